"""A stand-in for a model that judges leads: a few rules over the text it is given, each with its points.

    score("Messages (1)\\n- 2026-03-01T10:00:00Z email, contact: What does it cost?")
    # '{"score": 0.3, "reasons": ["asks for a price, an offer or a contract (+30)"]}'

Every answer is a function of the question. The rules look for words and numbers: they are easily fooled, and say so by
naming what they went by. A real model takes their place without any other change.
"""

from __future__ import annotations

import json
import re

_TIDES = re.compile(r"\b(?:tides?|tidal|harbours?|ports?|ships?|boats?|ferry|ferries|estuary|coasts?)\b", re.IGNORECASE)
_ASKS = re.compile(r"\b(?:prices?|quotes?|offers?|contracts?|costs?|preise?|angebot|vertrag|precios?|oferta|"
                   r"presupuesto|prix|devis|pris|tilbud)\b|見積|価格", re.IGNORECASE)
_DECLINES = re.compile(r"not interested|no longer|stop writing|unsubscribe|kein interesse|keine weiteren nachrichten|"
                       r"no me interesa|pas intéressée?", re.IGNORECASE)
_SAID = re.compile(r"^- \S+ [^,\n]*, contact: (.*)$", re.MULTILINE)
_DEAL = re.compile(r"^- (.*): \S+ EUR, (new|proposal|negotiation|won|lost), updated \S*$", re.MULTILINE)


def about_company(text: str) -> str:
    """{"summary", "fit"}: of 100, 25 to begin with, 50 for tides, 25 for fifty people, -50 for a service they have."""
    row = dict(re.findall(r"^(\w+): (.*)$", text, re.MULTILINE))
    people = int(row.get("employees", 0))
    points = 25 + 50 * bool(_TIDES.search(text)) + 25 * (people >= 50) - 50 * ("another tide service" in text)
    what = row.get("sector", "no sector") + (f" in {row['country']}" if "country" in row else "")
    summary = f"{row['name']}: {what}" + (f", {people} people" if people else "") if "name" in row else text
    return json.dumps({"summary": summary, "fit": max(points, 0) / 100}, ensure_ascii=False)


def score(text: str) -> str:
    """{"score", "reasons"}: the points of the rules that apply, of 100."""
    found = [(points, reason) for points, reason in _applies(text) if points]
    total = min(max(sum(points for points, _ in found), 0), 100)
    reasons = [f"{reason} ({points:+d})" for points, reason in found] or ["nothing speaks for it"]
    return json.dumps({"score": total / 100, "reasons": reasons}, ensure_ascii=False)


def _applies(text: str) -> list[tuple[int, str]]:
    """(points, reason) of every rule, 0 points where it does not apply."""
    said, stages = "\n".join(_SAID.findall(text)), {stage for _, stage in _DEAL.findall(text)}
    heard, answers = _number(r"^Last heard: (\S+) days ago", text), _number(r"^Answers: within (\S+) hours$", text)
    fit = _number(r"^Company: .*\(fit (\S+)\)$", text) or 0.0
    open_deal = 20 if stages & {"proposal", "negotiation"} else 10 * ("new" in stages)
    recent = 0 if heard is None else 15 if heard <= 7 else 5 * (heard <= 30)
    return [
        (30 * bool(_ASKS.search(said)), "asks for a price, an offer or a contract"),
        (open_deal, "has an open deal"),
        (round(20 * fit), "works for a company that fits"),
        (recent, f"was last heard {heard:g} days ago" if heard is not None else ""),
        (10 * (answers is not None and answers <= 24), "answers within a day"),
        (5 * ("won" in stages), "has bought before"),
        (-40 * bool(_DECLINES.search(said)), "asks to be left alone"),
    ]


def draft(text: str) -> str:
    """A follow-up: whom it is for, the last thing they wrote, and the deal that is open."""
    name = re.search(r"^Contact: ([^,\n]*)", text, re.MULTILINE)
    said = _SAID.findall(text)
    deals = [title for title, stage in _DEAL.findall(text) if stage not in ("won", "lost")]
    channel = re.search(r"^Last heard: .*, by (.*)$", text, re.MULTILINE)
    parts = [f"Hello {name[1]}," if name else "Hello,"]
    if said:
        parts.append(f"thank you for your message: “{said[-1]}”")
    if deals:
        parts.append(f"It is about “{deals[0]}”, and I have it in front of me.")
    by = f" by {channel[1]}" if channel else ""
    return "\n\n".join([*parts, f"May I come back to you{by} this week?", "The tideline team"])


def _number(pattern: str, text: str) -> float | None:
    found = re.search(pattern, text, re.MULTILINE)
    return float(found[1]) if found else None
