"""Foreign exceptions end here: what went wrong with a model somewhere else, in one word and one sentence for a person.

    translated(error, where)    # a ModelError, kind "rate_limit": Anthropic takes no more requests for now (429): ...

The sentence is ours. Of the provider's own words only an explanation is quoted, shortened and without keys, where it
says what to mend. Exceptions that are a mistake in the program, as a misspelt option, are nobody else's and pass.
"""

from __future__ import annotations

import math
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from json import JSONDecodeError

from .base import ModelError, without_keys


@dataclass(frozen=True)
class Where:
    """What a sentence may name: who was asked, for which model, how long, and where the key came from."""

    who: str
    model: str
    timeout: float
    key_from: str
    key: str = ""  # never said: it is here to be taken out of what others say

    def __repr__(self) -> str:
        return f"Where({self.who!r}, {self.model!r})"


class Unreadable(Exception):
    """What a server sent is no reply of a model."""


class Broken(Exception):
    """A reply ended before its end."""


# ---- what the statuses mean

SAID: dict[int, tuple[str, str]] = {  # status -> kind, sentence
    400: ("bad_request", "{who} could not use the request (400){why}"),
    401: ("auth", "{who} does not accept the key (401): check {key_from}"),
    402: ("auth", "{who} wants to be paid first (402): the account behind {key_from} has no credit"),
    403: ("auth", "{who} does not allow this with the key (403){why}: check {key_from}, and what its account may use"),
    404: ("bad_request", "{who} knows no model {model!r} (404): check its name, and base_url= if you gave one"),
    408: ("overloaded", "{who} gave up waiting (408): try again"),
    409: ("overloaded", "{who} is busy with another request (409): try again"),
    413: ("bad_request", "the question is too long for {who} (413): shorten it"),
    422: ("bad_request", "{who} could not use the request (422){why}"),
    429: ("rate_limit", "{who} takes no more requests for now (429): wait a little, or ask less often"),
    503: ("overloaded", "{who} is overloaded (503): try again in a minute"),
    504: ("overloaded", "{who} took too long (504): try again in a minute"),
    529: ("overloaded", "{who} is overloaded (529): try again in a minute"),
}
OTHER_4 = ("bad_request", "{who} refused the request ({status}){why}")
OTHER_5 = ("overloaded", "{who} is out of order ({status}): try again in a minute")

# What a body may say beside its status, and what that means; in a stream it is all there is.
CODES: dict[str, tuple[str, str]] = {
    "insufficient_quota": ("auth", "the account behind {key_from} has no credit left at {who}: add some"),
    "context_length_exceeded": ("bad_request", "the question is too long for {model!r}: shorten it"),
    "content_filter": ("refused", "{who} will not answer this question: its content filter stopped it"),
    "content_policy_violation": ("refused", "{who} will not answer this question: it breaks its content policy"),
}
TYPES = {"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
         "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "rate_limit_exceeded": 429,
         "overloaded_error": 529, "timeout_error": 504}  # -> the status it would have had


def translated(error: Exception, where: Where) -> ModelError | None:
    """The ModelError for what an SDK raised; None for what is not the world's fault but the program's."""
    said = _said(error)
    if said is None:
        return None
    kind, sentence = said
    about = {"who": where.who, "model": where.model, "timeout": where.timeout, "key_from": where.key_from}
    return ModelError(kind, sentence.format(**about, status=_status(error), why=_why(error, where)))


def _said(error: Exception) -> tuple[str, str] | None:
    names = {kind.__name__ for kind in type(error).__mro__}  # each SDK has classes of its own, by the same names
    if code := CODES.get(str(getattr(error, "code", ""))):
        return code
    if isinstance(error, (Unreadable, JSONDecodeError, UnicodeDecodeError)):
        return "connection", "{who} sent something that is no reply of a model: is it one, at this address?"
    if "APIStatusError" in names or ("APIError" in names and "APIConnectionError" not in names):
        status = _status(error)
        return SAID.get(status) or (OTHER_5 if status >= 500 else OTHER_4)
    if names & {"APIConnectionError", "TransportError", "TimeoutException", "OSError"}:
        return _unconnected(error, names)
    if isinstance(error, Broken):
        return "connection", "{who} broke off in the middle of its reply"
    if isinstance(error, UnicodeEncodeError):
        return "bad_request", "the question holds half a character (a lone surrogate), which cannot be sent"
    return None


def _status(error: Exception) -> int:
    """The HTTP status, or, for an error that came in the middle of a stream, the one it would have had."""
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status >= 400:
        return status
    words = [str(getattr(error, name, "")) for name in ("type", "code")]
    return next((TYPES[word] for word in words if word in TYPES), 500)


# ---- why there was no connection


def _unconnected(error: BaseException, names: set[str]) -> tuple[str, str]:
    chain = list(_chain(error))

    def by(*kinds: type[BaseException]) -> bool:
        return any(isinstance(link, kinds) for link in chain)

    if names & {"APITimeoutError", "TimeoutException"} or by(TimeoutError):
        return "timeout", "{who} did not answer within {timeout:g} s"
    if by(socket.gaierror):
        return "connection", "no connection to {who}: its address was not found; is there a network?"
    if by(ConnectionRefusedError):
        return "connection", "no connection to {who}: nothing answers there; is it running?"
    if by(ssl.SSLCertVerificationError):
        return "connection", "no safe connection to {who}: its certificate is not trusted; is there a proxy in between?"
    if any(type(link).__name__ in ("ConnectError", "ProxyError", "UnsupportedProtocol") for link in chain):
        return "connection", "no connection to {who}: is there a network, and is base_url= right if you gave one?"
    return "connection", "the connection to {who} broke off"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The exception, and what led to it."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


# ---- what else a failure says


def _why(error: Exception, where: Where) -> str:
    """": " and the provider's explanation, where there is one that a person can read; else ""."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else body
    text = inner.get("message") if isinstance(inner, dict) else inner
    if not isinstance(text, str):
        return ""
    text = without_keys(text)
    if len(where.key) > 7:  # a shorter one is a placeholder, and might be a word
        text = text.replace(where.key, "[key]")
    text = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    text = re.split(r"(?<=[.!?]) |[{<\[](?!key\])", text)[0].rstrip(" .:,")
    return f": {text[:157]}..." if len(text) > 160 else f": {text}" if text else ""


def asked_to_wait(error: Exception) -> float:
    """How many seconds the server wants to be left alone for: `retry-after-ms`, or `retry-after`; 0 if it says none."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * unit
            return seconds if 0 < seconds < math.inf else 0.0
        except (KeyError, ValueError):
            continue
    try:
        until = parsedate_to_datetime(headers["retry-after"])
        return max(0.0, (until - datetime.now(timezone.utc)).total_seconds())
    except (KeyError, TypeError, ValueError):
        return 0.0


@contextmanager
def reading() -> Iterator[None]:
    """Within it, what falls over a reply that is put together wrongly is Unreadable: the SDKs check nothing."""
    try:
        yield
    except (AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise Unreadable from error
