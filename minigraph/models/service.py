"""A model that somebody else runs may be slow, busy or out of reach: it is asked again, for a while, and then given up.

    model = anthropic_model("NAME")            # or openai_model("NAME"), with base_url= any server that speaks like it
    model([Message("user", "Hello")]).text     # what it said, within a minute, or ModelError, in one sentence

Here is what both SDKs need: the key, the deadline, the other tries. How one of them is asked, and how its answer is
read, stands in `anthropic` and `openai`.
"""

from __future__ import annotations

import logging
import math
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import monotonic, sleep
from typing import Any, ClassVar
from urllib.parse import urlsplit

from ..crew import emit
from .base import Message, ModelError, Reply, ToolSpec
from .border import Where, asked_to_wait, reading, translated

Hear = Callable[[str], Any]  # takes the pieces of a reply, as they come
log = logging.getLogger("minigraph")

AGAIN = ("rate_limit", "overloaded", "connection")  # the kinds of failure that may be gone at the next try
NO_KEY = "none"  # what is sent to a server of one's own, which asks for none; the SDKs do
PAUSE = 0.5  # seconds before the second try; before each further one twice as long


class Service:
    """A model behind an SDK. It is safe to ask from any number of threads.

    Subclasses say which SDK it is (`sdk`), what is asked (`request`), how (`send`), and what came (`read`).
    """

    company: ClassVar[str]  # as a person calls it
    home: ClassVar[str]  # the host that this name stands for
    prefix: ClassVar[str]  # of the environment variables: ..._API_KEY, ..._MODEL, ..._BASE_URL

    def __init__(self, model: str | None, *, api_key: str | None, base_url: str | None, client: Any, timeout: float,
                 retries: int, stream: bool | Hear, options: dict[str, Any]) -> None:
        self.base_url = base_url or os.environ.get(f"{self.prefix}_BASE_URL")
        _check(timeout, retries, self.base_url, stream)
        self.name = model or self._model_name()
        self.timeout, self.retries, self.options = timeout, retries, options
        self.hear: Hear | None = say if stream is True else stream or None
        self.key_from = "the key of your client" if client is not None else "api_key=" if api_key else self.variable
        if client is None:
            client = self._connected(api_key or self._key())
        elif hasattr(client, "with_options"):
            client = client.with_options(max_retries=0)
        self.client = client

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.where.who})"

    def sdk(self) -> tuple[Any, Callable[..., Any]]:
        """(the SDK, the class of its client): the SDK is imported here, and nowhere else."""
        raise NotImplementedError

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec] | None) -> dict[str, Any]:
        """The arguments of the SDK's call."""
        raise NotImplementedError

    def send(self, request: dict[str, Any], seconds: float, hear: Hear | None) -> Any:
        """The SDK's answer; `hear` is told of every piece, if there is one."""
        raise NotImplementedError

    def read(self, answer: Any) -> Reply:
        """The answer in our words."""
        raise NotImplementedError

    # ---- asking, and asking again

    def __call__(self, messages: Sequence[Message], tools: Sequence[ToolSpec] | None = None) -> Reply:
        """The reply, within `timeout` seconds; or ModelError.

        The SDKs would try again too. But they give each try the whole timeout, and in between they sleep for as long
        as the server tells them, an hour if it likes.
        """
        request, end, tries = self.request(messages, tools), monotonic() + self.timeout, 0
        while True:
            tries, heard = tries + 1, Heard(self.hear)
            try:
                return self._asked(request, end, heard)
            except Exception as error:
                failure, wished = translated(error, self.where), asked_to_wait(error)
                if failure is None:
                    raise
            pause = max(wished, PAUSE * 2 ** (tries - 1))
            # What was heard cannot be unsaid: a reply that broke off is not begun again.
            if failure.kind not in AGAIN or heard.pieces or tries > self.retries or monotonic() + pause >= end:
                break
            emit("retry", {"attempt": tries, "attempts": self.retries + 1, "error": f"ModelError: {failure}",
                           "delay": pause})
            sleep(pause)  # in real time: a virtual hour is over at once, and the server is as busy as before
        # Not within `except`: the SDK's exception, with the request and the key in it, would hang on to this one.
        raise _in_the_end(failure, tries, wished)

    def _asked(self, request: dict[str, Any], end: float, heard: Heard) -> Reply:
        answer = self.send(request, max(0.001, end - monotonic()), heard if self.hear else None)
        with reading():
            return self.read(answer)

    @property
    def where(self) -> Where:
        """What a sentence about a failure may name."""
        url = urlsplit(str(getattr(self.client, "base_url", None) or self.base_url or ""))
        at = f"{url.hostname}:{url.port}" if url.port else url.hostname
        who = self.company if url.hostname in (self.home, None) else f"the server {at}"
        key = getattr(self.client, "api_key", None)
        return Where(who, self.name, self.timeout, self.key_from, key if isinstance(key, str) and key != NO_KEY else "")

    # ---- the SDK's client, and the environment, when a model is made

    def _connected(self, key: str) -> Any:
        sdk, client = self.sdk()
        http = http_client(sdk)
        made = client(api_key=key, base_url=self.base_url, max_retries=0, http_client=http)
        weakref.finalize(made, http.close)  # the SDK closes only what it has opened
        return made

    @property
    def variable(self) -> str:
        """The name of the environment variable with the key."""
        return f"{self.prefix}_API_KEY"

    def _model_name(self) -> str:
        if name := os.environ.get(f"{self.prefix}_MODEL"):
            return name
        raise ModelError("bad_request", f"which model of {self.company}? Give its name, or set {self.prefix}_MODEL")

    def _key(self) -> str:
        if key := os.environ.get(self.variable):
            return key
        if self.base_url:
            return NO_KEY
        raise ModelError("auth", f"no key for {self.company}: set {self.variable}, or use the stub, which needs none")

    # ---- copies for other processes

    def __getstate__(self) -> dict[str, Any]:
        if self.key_from != self.variable:
            raise TypeError(f"{self!r} was given its key or client, and a key must not get into a pickle: "
                            f"set {self.variable} instead, and leave it out here")
        return {name: value for name, value in vars(self).items() if name != "client"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.client = self._connected(self._key())


def say(piece: str) -> None:
    """An event `text` of the node that asks."""
    emit("text", {"text": piece})


class Heard:
    """Hands on the pieces of a reply, and counts them; a listener that raises is logged, and the reply goes on."""

    def __init__(self, hear: Hear | None) -> None:
        self.hear, self.pieces = hear, 0

    def __call__(self, piece: str) -> None:
        self.pieces += 1
        try:
            if self.hear is not None:
                self.hear(piece)
        except Exception:
            log.exception("the listener raised on a piece of a reply; the reply goes on")


def http_client(sdk: Any) -> Any:
    """The SDK's own HTTP client, which gives up a reply that is still coming when its time is over.

    A timeout of HTTP is one of silence: for a server that gives a sign of life now and then, as many do while their
    model thinks, it would wait for ever.
    """
    def begin(request: Any) -> None:
        request.extensions["end"] = monotonic() + request.extensions["timeout"]["read"]

    def watch(response: Any) -> None:
        end, pieces = response.request.extensions["end"], response.iter_raw
        response.iter_raw = lambda *args, **kwargs: until(end, pieces(*args, **kwargs))

    return sdk.DefaultHttpxClient(event_hooks={"request": [begin], "response": [watch]})


def until(end: float, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces, while there is time; TimeoutError with the first that comes too late."""
    for piece in pieces:
        if monotonic() > end:
            raise TimeoutError
        yield piece


def _in_the_end(failure: ModelError, tries: int, wished: float) -> ModelError:
    """The failure, with how often was tried, and how long the server wishes to be left alone."""
    more = [f"tried {tries} times"] if tries > 1 else []
    if wished and failure.kind in AGAIN:
        more.append(f"it asks to be left alone for {math.ceil(wished)} s")
    return ModelError(failure.kind, f"{failure} ({'; '.join(more)})") if more else failure


def _check(timeout: Any, retries: Any, base_url: Any, stream: Any) -> None:
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < math.inf:
        raise ValueError(f"timeout={timeout!r}: a timeout is a number of seconds above 0")
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise ValueError(f"retries={retries!r}: it counts further tries, 0 or more")
    if base_url is not None and not str(base_url).startswith(("http://", "https://")):
        raise ValueError(f"base_url={base_url!r}: an address begins with http:// or https://")
    if not isinstance(stream, bool) and not callable(stream):
        raise TypeError(f"stream={stream!r}: it is True, False, or a function that takes the pieces of a reply")
