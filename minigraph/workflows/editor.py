"""Stand-ins for the models of an editorial office: what they say is a function of the text, by a few small rules.

    tone_of("Our BEST TABLE ever!!!")           # '0.35\\nit shouts: BEST TABLE\\n3 exclamation marks\\nit boasts: ...'
    calmed("Our BEST TABLE ever!!!")            # 'Our table.'
    struck("It is new. It has 47 harbours.", ["47"])    # 'It is new.'

They count capitals, exclamation marks and a few words of eight languages, look numbers up, and understand nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..models.base import Message, Reply, ToolCall
from .lookup import MOST_WORDS, READS, any_of, sections, words
from .replies import results

LONGEST, SHORTEST = 600, 20  # characters of a text that fits
STYLE, PER_FLAW = 0.35, 0.15  # how low style alone can bring the tone, and what a flaw costs
DOUBT = 0.6  # the facts of a text with a number in doubt are worth less than this
TEXT = "\n\nText:\n"  # stands between what the checks say, which is one line each, and the text

_CAPS = "[A-ZÀ-ÖØ-ÞΑ-ΩА-Я]"
_SHOUT = re.compile(rf"(?<!\w)(?:{_CAPS}{{2,}}(?: +{_CAPS}{{2,}})+|{_CAPS}{{5,}})(?!\w)")  # UTC alone is no shouting
_BANG = re.compile(r"(?<!<)[!！]+(?![\w=\[(-])")  # not that of a != b, of ![a picture](...) or of <!-- a comment -->
_PRAISE = any_of("""amazing, awesome, best, brilliant, ever, fantastic, greatest, incredible, magnificent, number
    one, perfect, revolutionary, sensational, stunning, ultimate, unbelievable, unique, world-class, aller zeiten,
    beste*, einzigartig*, fantastisch*, größte*, perfekt*, revolutionär*, sensationell*, unglaublich*, incroyable*,
    meilleur*, révolutionnaire*, extraordinario, increíble*, mejor, incrível, melhor, καλύτερ*, απίστευτ*, 史上最高,
    最高, 最強, 驚異的, 최고, 최강, 놀라운""")
_INSULT = any_of("""idiot*, imbecile*, liar*, moron*, stupid, arschloch, dummköpfe, lügner*, imbécile*, menteur*,
    estúpid*, mentiros*, ηλίθι*, バカ, 馬鹿, 바보""")


# ---- the tone


def tone_of(text: str) -> str:
    """A verdict, the score and then a line for each fault. Insults cannot be mended, style can."""
    text, unread = text[:READS], text[READS:]
    if _INSULT.search(text):
        return f"0.1\nit insults: {_distinct(_INSULT, text)}"
    marks = sum(len(found[0]) for found in _BANG.finditer(text))
    shouted = sum(len(found[0].split()) for found in _SHOUT.finditer(text))
    boasts = sum(1 for _ in _PRAISE.finditer(text))
    why = [f"it shouts: {_distinct(_SHOUT, text)}"] if shouted else []
    why += [f"{marks} exclamation mark{'s' * (marks > 1)}"] if marks else []
    why += [f"it boasts: {_distinct(_PRAISE, text)}"] if boasts else []
    why += [f"only the first {READS} characters were read"] if unread else []
    return "\n".join([f"{max(STYLE, 1 - PER_FLAW * (marks + shouted + boasts)):.2f}", *why])


def _distinct(pattern: re.Pattern[str], text: str, most: int = 5) -> str:
    """What the pattern finds, each once."""
    found = list(dict.fromkeys(" ".join(match[0].split()) for match in pattern.finditer(text)))
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")


def calmed(text: str) -> str:
    """The text without its capitals, exclamation marks and boasts; what was calm already stays as it is."""
    return "".join(map(_calm, sentences(text)))


def _calm(sentence: str) -> str:
    """The sentence, calm; nothing if without its boasts it says nothing."""
    body = sentence.lstrip()
    low = _SHOUT.sub(lambda found: found[0].lower(), body)
    modest = _BOAST.sub("", low).lstrip()
    if modest != low and not words(modest):
        return ""
    quiet = _BANG.sub(_full_stop, modest)
    if quiet != body and body[0].isupper():
        quiet = quiet[:1].upper() + quiet[1:]
    return sentence[: len(sentence) - len(body)] + quiet


def _full_stop(found: re.Match[str]) -> str:
    if found.string[max(0, found.start() - 1): found.start()] in ("?", "？", ".", "。", "…"):
        return ""
    return "。" if "！" in found[0] else "."


_BOAST = re.compile(rf"(?: ?(?:{_PRAISE.pattern}))+", re.IGNORECASE)


# ---- the facts


def fact_check(messages: Sequence[Message], tools: Any = None) -> Reply:
    """What the loop says next: first it looks all numbers of the text up; then it gives its verdict.

    A number is known if a line that was found has it, and a word of its sentence too. Where the search itself failed,
    or there are more numbers than one can look up, there is no verdict, but a sentence that says so.
    """
    text = next(message.content for message in messages if message.role == "user")
    claims = [(number, sentence) for sentence in sentences(_LISTED.sub("", text[:READS]))
              for number in _NUMBER.findall(sentence)]
    if len(claims) > MOST_WORDS or len(text) > READS:
        return Reply(f"I cannot tell: there are more than {MOST_WORDS} numbers, or more than {READS} characters")
    if not claims:
        return Reply("1.0\nthere is no number to look up")
    returned = results(messages)
    if not returned:
        query = " ".join(dict.fromkeys(number for number, _ in claims))
        return Reply("", tuple(ToolCall(str(number), tool.name, {"query": query})
                               for number, tool in enumerate(tools or (), 1)))
    lines = [line for found in sections("\n".join(returned)).values() for line in found]
    doubtful = list(dict.fromkeys(number for number, sentence in claims if not _known(number, sentence, lines)))
    if not doubtful:
        return Reply(f"1.0\nthe notes and pages have {'each number' if len(claims) > 1 else 'the number'}")
    if failed := [result for result in returned if result.startswith("error: ")]:
        return Reply(f"I cannot tell: {failed[0].removeprefix('error: ')}")
    known = sum(number not in doubtful for number, _ in claims) / len(claims)
    return Reply(f"{max(STYLE, DOUBT * known):.2f}\nno note or page has {', '.join(map(repr, doubtful))}")


_NUMBER = re.compile(r"(?<![\w.,:/-])\d+(?:[.,:/-]\d+)*(?!\w)")
_LISTED = re.compile(r"^\s*\d+[.)]\s", re.MULTILINE)  # 1. and 2) before the items of a list


def _known(number: str, sentence: str, lines: list[str]) -> bool:
    about = {word for word in words(sentence) if not word[0].isdigit()}
    return any(number in _NUMBER.findall(line) and about & set(words(line)) for line in lines)


def struck(text: str, doubtful: Sequence[str]) -> str:
    """The text without the sentences that hold one of these numbers."""
    return "".join(piece for piece in sentences(text) if not set(doubtful) & set(_NUMBER.findall(piece))).strip()


# ---- writing


def write(messages: Sequence[Message], tools: Any = None) -> Reply:
    """What the writer says next. A text it leaves as it is; of a topic, a few words, it tells what the notes say."""
    rough = next(message.content for message in messages if message.role == "user").strip()
    returned = results(messages)
    if not _is_topic(rough):
        return Reply(rough)
    if not returned:
        return Reply("", tuple(ToolCall(str(number), tool.name, {"query": " ".join(words(rough))})
                               for number, tool in enumerate(tools or (), 1)))
    found = sections("\n".join(returned))
    notes = [re.sub(r"^\d{4}-\d\d-\d\d: | \([^()]*\)$", "", line) for line in found.get("Memory", ())[:2]]
    pages = [re.sub(r" \((.*)\)$", r". \1", line) for line in found.get("Web", ())[:1]]
    return Reply("\n\n".join([rough, *notes, *pages]))


def _is_topic(text: str) -> bool:
    return "\n" not in text and len(text) < 80 and len(text.split()) <= 6 and text[-1:].isalnum()


def revise(messages: Sequence[Message], _: Any = None) -> Reply:
    """The text with one kind of fault mended: the one that the first line of what the checks say is about."""
    said, _, text = messages[-1].content.partition(TEXT)
    worst = next((line for line in said.split("\n") if line.startswith("- ")), "")
    if worst.startswith("- tone"):
        return Reply(calmed(text))
    if worst.startswith("- facts"):
        return Reply(struck(text, re.findall(r"'([^']*)'", worst)))
    return Reply(shortened(text))


def shortened(text: str) -> str:
    """As many whole sentences from the beginning as fit."""
    kept = ""
    for piece in sentences(text):
        if len(kept) + len(piece.rstrip()) > LONGEST:
            break
        kept += piece
    return kept.rstrip()


def sentences(text: str) -> list[str]:
    """The text in pieces that put together are the text: a sentence each, with the space before it."""
    return re.split(r"(?<=[.!?…])(?=\s)|(?<=[。！？])|(?=\n)", text)
