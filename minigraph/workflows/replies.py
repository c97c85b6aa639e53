"""What a model said, made into what a node may write; a reply that cannot be used is a failure of the node.

    verdict("0.4\\nthree exclamation marks")    # {"score": 0.4, "says": "three exclamation marks"}
    verdict("Looks good to me!")                # ValueError, and so an entry in state["errors"]

That is the seam at which a graph falls open: a model that talks nonsense fails its node as a dead one does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..engine import Node
from ..models.base import Message
from ..nodes import Parser


def parsed(node: Node, parse: Callable[[str], Any], wanted: str) -> Node:
    """The node, whose reply goes through `parse` before it is written, as an llm_node's does: for an agent_node."""
    return replace(node, fn=Parsed(node.fn, Parser(parse, wanted)))


@dataclass(frozen=True)
class Parsed:
    """The function of such a node."""

    fn: Callable[[Any], dict[str, str]]
    parse: Parser

    def __call__(self, state: Mapping[str, Any]) -> dict[str, Any]:
        return {key: self.parse(text) for key, text in self.fn(state).items()}


def spoken(text: Any) -> str:
    """`text`; ValueError if it is none, or blank."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError("there are no words in it")
    return text


def finished(text: str) -> str:
    """`text`; ValueError if it is blank, or the last words of a loop that met its cap."""
    if spoken(text).rstrip().rpartition("\n")[2].startswith("[stopped: "):
        raise ValueError("it stopped before it was done")
    return text


def verdict(reply: str) -> dict[str, Any]:
    """{score, says}: the first line is a number from 0 to 1, the lines below say why. ValueError for anything else."""
    first, _, rest = reply.strip().partition("\n")
    score = float(first)
    if not 0 <= score <= 1:
        raise ValueError(f"{first} does not lie between 0 and 1")
    return {"score": score, "says": "; ".join(line.strip() for line in rest.splitlines() if line.strip())}


def results(messages: list[Message] | Any) -> list[str]:
    """What the tools returned in a conversation, in order: [] before the first."""
    return [message.content for message in messages if message.role == "tool"]
