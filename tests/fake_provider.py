"""A model provider on 127.0.0.1 that says what it is told to: both wire formats, JSON and SSE, and every way to fail.

    with FakeProvider(Say("five"), Fail(529)) as fake:
        openai_model("small", base_url=fake.openai, api_key="k")(messages)       # five, then 529
        fake.requests[0].body["messages"]

One entry of the script answers one request, whichever SDK asks; the last one answers all further ones. It checks what
real providers check (a key, an answer to every tool call, no empty text), for an adapter must not get away with less.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANTHROPIC_STOPS = {"end": "end_turn", "tool_use": "tool_use", "max_tokens": "max_tokens", "refusal": "refusal"}
OPENAI_STOPS = {"end": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}
ANTHROPIC_TYPES = {400: "invalid_request_error", 401: "authentication_error", 402: "billing_error",
                   403: "permission_error", 404: "not_found_error", 413: "request_too_large",
                   429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error"}


def unset(monkeypatch: Any) -> None:
    """Takes keys, models, addresses and proxies out of the environment: no test asks anyone but this server."""
    for name in list(os.environ):
        if name.upper().endswith(("_API_KEY", "_AUTH_TOKEN", "_MODEL", "_BASE_URL", "_PROXY")):
            monkeypatch.delenv(name)


# ---- what it may be told to say


@dataclass
class Call:
    """A tool call. Arguments are a mapping, or text that may be no JSON."""

    id: str
    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)

    @property
    def json(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass
class Say:
    """A reply. stop: a word of ours, or the provider's own. delay: seconds before it begins; pause: between its events.

    cut: in a stream, this many events come and then the end, or, with `crash`, the connection breaks. error: an error
    event of this type follows them instead. refusal: OpenAI's own field for it.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    stop: str | None = None
    tokens: tuple[int, int, int] = (7, 3, 0)  # in, out, and how many of those in came from a cache
    delay: float = 0.0
    pause: float = 0.0
    cut: int | None = None
    crash: bool = False
    error: str | None = None
    refusal: str | None = None

    @property
    def why(self) -> str:
        return self.stop or ("tool_use" if self.calls else "end")

    @property
    def pieces(self) -> list[str]:
        return [self.text[start:start + 4096] if len(self.text) > 400 else self.text[start:start + 6]
                for start in range(0, len(self.text), 4096 if len(self.text) > 400 else 6)]


@dataclass
class Fail:
    """An answer that is an error: a status, a message and a code inside the provider's usual body."""

    status: int
    message: str = "it failed"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0


@dataclass
class Raw:
    """Bytes as they are."""

    body: bytes
    status: int = 200
    type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0


@dataclass
class Drip:
    """A sign of life, again and again, and no reply: spaces before JSON, comments in a stream."""

    times: int = 100
    pause: float = 0.05
    delay: float = 0.0


@dataclass
class Asked:
    """One request: where to, with which headers (names in small letters), and what for."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class FakeProvider:
    """The server, within a `with` block; `anthropic` and `openai` are the base URLs for the two SDKs."""

    def __init__(self, *script: Say | Fail | Raw | Drip | Any) -> None:
        self.script = list(script)
        self.requests: list[Asked] = []
        self._turn = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.fake = self
        self.anthropic = f"http://127.0.0.1:{self._server.server_port}"
        self.openai = self.anthropic + "/v1"

    def __enter__(self) -> FakeProvider:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.005,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer_to(self, asked: Asked) -> Any:
        """The next entry of the script; a function in it is called with the request."""
        with self._turn:
            self.requests.append(asked)
            said = self.script[min(len(self.requests), len(self.script)) - 1]
        return said(asked) if callable(said) else said


# ---- on the wire


class _Server(ThreadingHTTPServer):
    daemon_threads, block_on_close = True, False
    request_queue_size = 64
    fake: FakeProvider

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # clients that have had enough may go
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else every small event waits for the last one's acknowledgement

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.path, headers, json.loads(self.rfile.read(length)))
        wire = {"/v1/messages": _Anthropic, "/v1/chat/completions": _OpenAI}.get(self.path)
        if wire is None:
            return self._send(404, b'{"error": {"message": "no such path"}}')
        said = self.server.fake.answer_to(asked)
        wrong = wire.complaint(asked)
        if wrong and not isinstance(said, (Fail, Raw, Drip)):
            said = Fail(401 if "key" in wrong else 400, wrong)
        time.sleep(said.delay)
        try:
            if isinstance(said, Raw):
                self._send(said.status, said.body, said.type, said.headers)
            elif isinstance(said, Fail):
                self._send(said.status, json.dumps(wire.failure(said)).encode(), headers=said.headers)
            elif isinstance(said, Drip):
                self._drip(said, "text/event-stream" if asked.body.get("stream") else "application/json")
            elif asked.body.get("stream"):
                self._stream(wire.events(said, asked.body), said, wire)
            else:
                self._send(200, json.dumps(wire.reply(said, asked.body)).encode())
        except OSError:
            pass  # the client has gone: it was a test of timeouts
        return None

    def _send(self, status: int, body: bytes, kind: str = "application/json",
              headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _drip(self, said: Drip, kind: str) -> None:
        self._begin(kind)
        for _ in range(said.times):
            self._chunk(b": still there\n\n" if kind == "text/event-stream" else b" ")
            time.sleep(said.pause)
        self._chunk(b"")

    def _begin(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _stream(self, events: Iterator[bytes], said: Say, wire: Any) -> None:
        self._begin("text/event-stream")
        for position, event in enumerate(events):
            if position == said.cut:
                if said.crash:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                if said.error:
                    self._chunk(wire.stream_error(said.error))
                break
            self._chunk(event)
            time.sleep(said.pause)
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


def _event(data: Mapping[str, Any], name: str | None = None) -> bytes:
    return ((f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n").encode()


class _Anthropic:
    """POST /v1/messages"""

    @staticmethod
    def complaint(asked: Asked) -> str:
        """What the real one would refuse, or ""."""
        messages = asked.body["messages"]
        if "x-api-key" not in asked.headers and not asked.headers.get("authorization", "").startswith("Bearer "):
            return "no key"
        if any(one["role"] not in ("user", "assistant") for one in messages) or "max_tokens" not in asked.body:
            return "messages: roles are user and assistant; max_tokens is required"
        wanted: set[str] = set()
        for one in messages:
            blocks = [{"type": "text", "text": one["content"]}] if isinstance(one["content"], str) else one["content"]
            if not blocks or any(block["type"] == "text" and not block["text"] for block in blocks):
                return "messages: text content blocks must be non-empty"
            results = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
            if results != wanted or [b["type"] for b in blocks[:len(results)]] != ["tool_result"] * len(results):
                return "messages: each tool_use must have its tool_result at the beginning of the next message"
            wanted = {block["id"] for block in blocks if block["type"] == "tool_use"}
            if any(not isinstance(block["input"], dict) for block in blocks if block["type"] == "tool_use"):
                return "tool_use.input: must be an object"
        return ""

    @staticmethod
    def failure(said: Fail) -> dict[str, Any]:
        kind = ANTHROPIC_TYPES.get(said.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": said.message}, "request_id": "req_1"}

    @staticmethod
    def stream_error(kind: str) -> bytes:
        return _event({"type": "error", "error": {"type": kind, "message": "it failed"}}, "error")

    @staticmethod
    def _message(said: Say, body: Mapping[str, Any], content: list[Any], stop: str | None, out: int) -> dict[str, Any]:
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": content,
                "stop_reason": stop, "stop_sequence": None,
                "usage": {"input_tokens": said.tokens[0] - said.tokens[2], "output_tokens": out,
                          "cache_read_input_tokens": said.tokens[2], "cache_creation_input_tokens": 0}}

    @classmethod
    def reply(cls, said: Say, body: Mapping[str, Any]) -> dict[str, Any]:
        content: list[Any] = [{"type": "text", "text": said.text}] if said.text else []
        content += [{"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.json or "{}")}
                    for call in said.calls]
        return cls._message(said, body, content, ANTHROPIC_STOPS.get(said.why, said.why), said.tokens[1])

    @classmethod
    def events(cls, said: Say, body: Mapping[str, Any]) -> Iterator[bytes]:
        yield _event({"type": "message_start", "message": cls._message(said, body, [], None, 1)}, "message_start")
        yield _event({"type": "ping"}, "ping")
        blocks = [({"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in said.pieces])]
        for call in said.calls:
            halves = [call.json[:5], call.json[5:]]
            blocks.append(({"type": "tool_use", "id": call.id, "name": call.name, "input": {}},
                           [{"type": "input_json_delta", "partial_json": half} for half in halves]))
        for index, (block, deltas) in enumerate(blocks if said.text else blocks[1:]):
            yield _event({"type": "content_block_start", "index": index, "content_block": block}, "content_block_start")
            for delta in deltas:
                yield _event({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")
            yield _event({"type": "content_block_stop", "index": index}, "content_block_stop")
        end = {"stop_reason": ANTHROPIC_STOPS.get(said.why, said.why), "stop_sequence": None}
        yield _event({"type": "message_delta", "delta": end, "usage": {"output_tokens": said.tokens[1]}},
                     "message_delta")
        yield _event({"type": "message_stop"}, "message_stop")


class _OpenAI:
    """POST /v1/chat/completions"""

    @staticmethod
    def complaint(asked: Asked) -> str:
        """What the real one would refuse, or ""."""
        if not asked.headers.get("authorization", "").startswith("Bearer "):
            return "no key"
        wanted: list[str] = []
        for one in asked.body["messages"]:
            if one["role"] == "tool":
                if one["tool_call_id"] not in wanted:
                    return "messages with role 'tool' must answer a preceding message with 'tool_calls'"
                wanted.remove(one["tool_call_id"])
            elif wanted:
                return "an assistant message with 'tool_calls' must be followed by an answer to each tool_call_id"
            if one["role"] not in ("system", "developer", "user", "assistant", "tool"):
                return "unknown role"
            if not isinstance(one.get("content"), str) and not one.get("tool_calls"):
                return "content: expected a string"
            wanted += [call["id"] for call in one.get("tool_calls", ())]
            if any(not isinstance(call["function"]["arguments"], str) for call in one.get("tool_calls", ())):
                return "tool_calls: arguments are a string"
        return ""

    @staticmethod
    def failure(said: Fail) -> dict[str, Any]:
        return {"error": {"message": said.message, "type": "error", "param": None, "code": said.code}}

    @staticmethod
    def stream_error(kind: str) -> bytes:
        return _event({"error": {"message": "it failed", "type": kind, "param": None, "code": None}})

    @staticmethod
    def _calls(said: Say) -> list[dict[str, Any]]:
        return [{"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.json}}
                for call in said.calls]

    @staticmethod
    def _usage(said: Say) -> dict[str, Any]:
        put, got, cached = said.tokens
        return {"prompt_tokens": put, "completion_tokens": got, "total_tokens": put + got,
                "prompt_tokens_details": {"cached_tokens": cached}}

    @classmethod
    def reply(cls, said: Say, body: Mapping[str, Any]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": said.text or None, "refusal": said.refusal}
        if said.calls:
            message["tool_calls"] = cls._calls(said)
        choice = {"index": 0, "message": message, "finish_reason": OPENAI_STOPS.get(said.why, said.why)}
        return {"id": "cmpl-1", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice],
                "usage": cls._usage(said)}

    @classmethod
    def events(cls, said: Say, body: Mapping[str, Any]) -> Iterator[bytes]:
        def chunk(delta: Mapping[str, Any], stop: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": stop}
            return _event({**head, "choices": [choice], "usage": None})

        head = {"id": "cmpl-1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        yield chunk({"role": "assistant", "content": ""})
        for piece in said.pieces:
            yield chunk({"content": piece})
        if said.refusal:
            yield chunk({"refusal": said.refusal})
        for index, call in enumerate(cls._calls(said)):
            text = call["function"]["arguments"]
            yield chunk({"tool_calls": [{"index": index, **call, "function": {**call["function"], "arguments": ""}}]})
            for half in (text[:5], text[5:]):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": half}}]})
        yield chunk({}, OPENAI_STOPS.get(said.why, said.why))
        if body.get("stream_options", {}).get("include_usage"):
            yield _event({**head, "choices": [], "usage": cls._usage(said)})
        yield b"data: [DONE]\n\n"
