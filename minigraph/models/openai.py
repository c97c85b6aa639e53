"""OpenAI's models, and every server that speaks their chat completions: a local one, a gateway, another company's.

    model = openai_model("NAME")                                        # the key in OPENAI_API_KEY
    model = openai_model("NAME", base_url="http://127.0.0.1:8080/v1")   # a server of your own, which asks for none
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace as Namespace
from typing import Any

from .base import Message, Reply, ToolCall, ToolSpec
from .border import Broken, Unreadable, reading
from .service import Hear, Service

STOPPED = {"length": "max_tokens", "tool_calls": "tool_use", "function_call": "tool_use",
           "content_filter": "refusal"}  # theirs -> ours; any other is "end"


def openai_model(model: str | None = None, *, api_key: str | None = None, base_url: str | None = None,
                 timeout: float = 60.0, retries: int = 2, stream: bool | Hear = False, max_tokens: int | None = None,
                 client: Any = None, **options: Any) -> OpenAIModel:
    """A model of OpenAI's, or of any server that speaks `/chat/completions` at `base_url`.

    model: its name, else that in OPENAI_MODEL. api_key: else that in OPENAI_API_KEY; with a `base_url` there need be
    none. timeout: seconds until there is a reply or a ModelError, with `retries` further tries and the pauses between
    them (the wrapper `timeout` of nodes.py is stricter: it does not even wait for a system that looks up an address).
    stream: True sends the pieces of a reply as events `text`; a function is called with each. max_tokens: where a
    reply is cut off. client: an SDK client of your own. options: go into the SDK's `chat.completions.create` as they
    are, as in temperature=0.

    ModelError if there is no key or no name, ImportError without the SDK.
    """
    return OpenAIModel(model, api_key=api_key, base_url=base_url, client=client, timeout=timeout, retries=retries,
                       stream=stream, options=options, max_tokens=max_tokens)


class OpenAIModel(Service):
    """What `openai_model` makes."""

    company, home, prefix = "OpenAI", "api.openai.com", "OPENAI"

    def __init__(self, model: str | None, *, max_tokens: int | None, **kwargs: Any) -> None:
        super().__init__(model, **kwargs)
        if max_tokens is not None:  # OpenAI has renamed it; the others have not
            name = "max_completion_tokens" if self.where.who == self.company else "max_tokens"
            self.options = {name: max_tokens, **self.options}

    def sdk(self) -> tuple[Any, Callable[..., Any]]:
        try:
            import openai
        except ImportError:
            raise ImportError('OpenAI\'s models need the extra "llm": pip install -e ".[llm]"') from None
        return openai, openai.OpenAI

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec] | None) -> dict[str, Any]:
        request = {"model": self.name, "messages": [_message(message) for message in messages], **self.options}
        if tools:
            request["tools"] = [{"type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.parameters}} for tool in tools]
        return request

    def send(self, request: dict[str, Any], seconds: float, hear: Hear | None) -> Any:
        ask = self.client.chat.completions.create
        if hear is None:
            return ask(**request, timeout=seconds)
        counted = {"stream_options": {"include_usage": True}, **request}
        gathered = Gathered()
        with ask(**counted, stream=True, timeout=seconds) as stream, reading():
            for chunk in stream:
                gathered.take(chunk, hear)
        return gathered.answer()

    def read(self, answer: Any) -> Reply:
        choice, message = answer.choices[0], answer.choices[0].message
        refusal = getattr(message, "refusal", None)
        calls = [ToolCall(call.id or f"call_{position}", call.function.name, _arguments(call.function.arguments))
                 for position, call in enumerate(message.tool_calls or (), 1) if getattr(call, "function", None)]
        stopped = "refusal" if refusal else STOPPED.get(choice.finish_reason, "end")
        return Reply(message.content or refusal or "", tuple(calls), stopped, _usage(answer.usage))


class Gathered:
    """The pieces of a stream, put together as they come, in the form of an answer that came at once.

    The SDK can do it too, but builds the whole reply anew for every piece, and raises where one was cut off.
    """

    def __init__(self) -> None:
        self.text: list[str] = []
        self.refusal: list[str] = []
        self.calls: dict[int, Any] = {}  # position -> the call, as far as it has come
        self.stopped: str | None = None
        self.usage: Any = None

    def take(self, chunk: Any, hear: Hear) -> None:
        self.usage = chunk.usage or self.usage
        for choice in chunk.choices:
            self.stopped = choice.finish_reason or self.stopped
            if choice.delta.content:
                self.text.append(choice.delta.content)
                hear(choice.delta.content)
            self.refusal.append(getattr(choice.delta, "refusal", None) or "")
            for part in choice.delta.tool_calls or ():
                call = self.calls.setdefault(part.index, Namespace(id="", name="", arguments=[]))
                call.id, call.name = call.id or part.id, call.name or part.function.name
                call.arguments.append(part.function.arguments or "")

    def answer(self) -> Any:
        if self.stopped is None:
            raise Broken if self.text or self.calls else Unreadable
        calls = [Namespace(id=call.id, function=Namespace(name=call.name, arguments="".join(call.arguments)))
                 for _, call in sorted(self.calls.items())]
        message = Namespace(content="".join(self.text), refusal="".join(self.refusal), tool_calls=calls)
        return Namespace(choices=[Namespace(message=message, finish_reason=self.stopped)], usage=self.usage)


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    said: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        said["tool_calls"] = [{"id": call.id, "type": "function", "function": {
            "name": call.name, "arguments": _text(call.arguments)}} for call in message.tool_calls]
    return said


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _arguments(text: str | None) -> Any:
    """The arguments of a call; what is no JSON object stays text, for the loop to tell the model so."""
    try:
        arguments = json.loads(text or "{}")
    except ValueError:
        return text
    return arguments if isinstance(arguments, dict) else text


def _usage(usage: Any) -> dict[str, int]:
    """input_tokens are all that went in; cached_tokens are those of them that a cache had. Not every server counts."""
    if usage is None:
        return {}
    cached = getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None)
    counts = {"input_tokens": usage.prompt_tokens, "output_tokens": usage.completion_tokens}
    return {**counts, "cached_tokens": cached} if cached else counts
