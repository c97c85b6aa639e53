"""Anthropic's models, asked through the SDK of that name: system prompts apart, and every turn a list of blocks.

    model = anthropic_model("NAME")                 # the key in ANTHROPIC_API_KEY; the extra "llm" brings the SDK
    llm_node("draft", "Write about {topic}.", "draft", model)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .base import Message, Reply, ToolCall, ToolSpec
from .border import Broken, reading
from .service import Hear, Service

STOPPED = {"max_tokens": "max_tokens", "model_context_window_exceeded": "max_tokens", "pause_turn": "max_tokens",
           "refusal": "refusal", "tool_use": "tool_use"}  # theirs -> ours; any other is "end"


def anthropic_model(model: str | None = None, *, api_key: str | None = None, base_url: str | None = None,
                    timeout: float = 60.0, retries: int = 2, stream: bool | Hear = False, max_tokens: int = 4096,
                    client: Any = None, **options: Any) -> AnthropicModel:
    """A model of Anthropic's, or of any server that speaks `/v1/messages` at `base_url`.

    model: its name, else that in ANTHROPIC_MODEL. api_key: else that in ANTHROPIC_API_KEY. timeout: seconds until
    there is a reply or a ModelError, with `retries` further tries and the pauses between them (the wrapper `timeout`
    of nodes.py is stricter: it does not even wait for a system that looks up an address). stream: True sends the
    pieces of a reply as events `text`; a function is called with each. max_tokens: where a reply is cut off.
    client: an SDK client of your own. options: go into the SDK's `messages.create` as they are; what it does not
    take, as `temperature`, goes through `extra_body={"temperature": 0}`.

    ModelError if there is no key or no name, ImportError without the SDK.
    """
    return AnthropicModel(model, api_key=api_key, base_url=base_url, client=client, timeout=timeout, retries=retries,
                          stream=stream, options={"max_tokens": max_tokens, **options})


class AnthropicModel(Service):
    """What `anthropic_model` makes."""

    company, home, prefix = "Anthropic", "api.anthropic.com", "ANTHROPIC"

    def sdk(self) -> tuple[Any, Callable[..., Any]]:
        try:
            import anthropic
        except ImportError:
            raise ImportError('Anthropic\'s models need the extra "llm": pip install -e ".[llm]"') from None
        return anthropic, anthropic.Anthropic

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec] | None) -> dict[str, Any]:
        """System messages become one system prompt; a turn is all that one side said before the other spoke again."""
        turns: list[dict[str, Any]] = []
        for message in messages:
            role, blocks = "assistant" if message.role == "assistant" else "user", _blocks(message)
            if turns and turns[-1]["role"] == role:
                turns[-1]["content"] += blocks
            elif blocks and message.role != "system":
                turns.append({"role": role, "content": blocks})
        request = {"model": self.name, "messages": turns, **self.options}
        if system := "\n\n".join(message.content for message in messages if message.role == "system"):
            request["system"] = system
        if tools:
            request["tools"] = [{"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
                                for tool in tools]
        return request

    def send(self, request: dict[str, Any], seconds: float, hear: Hear | None) -> Any:
        if hear is None:
            return self.client.messages.create(**request, timeout=seconds)
        with self.client.messages.stream(**request, timeout=seconds) as stream, reading():
            for event in stream:
                if event.type == "text":
                    hear(event.text)
            answer = stream.get_final_message()
        if answer.stop_reason is None:
            raise Broken
        return answer

    def read(self, answer: Any) -> Reply:
        text = "".join(block.text for block in answer.content if block.type == "text")
        wishes = [block for block in answer.content if block.type == "tool_use"]
        calls = tuple(ToolCall(wish.id, wish.name, wish.input or {}) for wish in wishes)
        return Reply(text, calls, STOPPED.get(answer.stop_reason, "end"), _usage(answer.usage))


def _blocks(message: Message) -> list[dict[str, Any]]:
    """The blocks of one message; a system message has none, and the service takes no empty text."""
    if message.role == "system":
        return []
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.content}]
    blocks: list[dict[str, Any]] = [{"type": "text", "text": message.content}] if message.content else []
    return blocks + [{"type": "tool_use", "id": call.id, "name": call.name, "input": _object(call.arguments)}
                     for call in message.tool_calls]


def _object(arguments: Any) -> dict[str, Any]:
    """The arguments of a call; what another model wrote in their place, and was no object, is shown in one."""
    return arguments if isinstance(arguments, dict) else {"invalid": arguments}


def _usage(usage: Any) -> dict[str, int]:
    """input_tokens are all that went in; cached_tokens are those of them that a cache had."""
    cached, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    counts = {"input_tokens": usage.input_tokens + cached + written, "output_tokens": usage.output_tokens}
    return {**counts, "cached_tokens": cached} if cached else counts
