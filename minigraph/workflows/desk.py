"""Stand-ins for the models of a triage: what they say is a function of the message, by a few small rules.

    intent_of("Could you call Lena back, please?")      # 'question'
    intent_of("Der Pegel ist ausgefallen!! Hilfe!")     # 'urgent'
    small_talk("Danke, bis morgen!")                    # 'Gern geschehen. Bis bald!'

They know a few words of eight languages, punctuation, capitals and length, and understand nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..models.base import Message, Reply, ToolCall, ToolSpec
from .lookup import TOOLS, any_of, sections, words
from .replies import results

READS = 2000  # characters of a message: whoever sorts mail reads how it begins
CHATTY = 8  # words: what is longer wants more than a friendly word


# ---- what a message wants


def intent_of(message: str) -> str:
    """'urgent', 'question', 'task' or 'social', in this order of precedence; what fits nowhere is a task.

    urgent: an urgent word that no *not* stands before; or trouble, told in capitals or with two exclamation marks.
    question: a question mark, or a question word in front. task: a request in front, or a *please*. social: a friendly
    word in a message of at most eight words, or no word at all.
    """
    text = message[:READS]
    if _URGENT.search(_NOT_URGENT.sub("", text)) or _TROUBLE.search(text) and _raised(text):
        return "urgent"
    length = len(re.findall(r"\w+", text))
    if _HOW_ARE_YOU.search(text) and length <= CHATTY:
        return "social"
    if re.search(r"[?？؟\u037e]", text) or _GREEK.search(text) and ";" in text or _ASKS.match(text.strip()):
        return "question"
    if requests(text):
        return "task"
    return "social" if not length or _FRIENDLY.search(text) and length <= CHATTY else "task"


def requests(message: str) -> bool:
    """Does it ask for something to be done?"""
    text = message[:READS].strip()
    return bool(_WANTS.match(text) or _PLEASE.search(text))


def _raised(text: str) -> bool:
    """Is the voice raised?"""
    return text.count("!") + text.count("！") >= 2 or re.search(r"\b[A-Z]{3,}\s+[A-Z]{2,}\b", text) is not None


_GREEK = re.compile(r"[\u0370-\u03ff]")

_URGENT = any_of("""urgent*, asap, emergency, immediately, at once, right now, mayday, dringend*, eilt, sofort,
    notfall, umgehend, urgence, immédiatement, tout de suite, au secours, urgente*, emergencia, emergência, ahora
    mismo, inmediatamente, imediatamente, socorro, επείγον*, αμέσως, 緊急, 至急, 大至急, 긴급, 급합니다, 당장""")
_NOT_URGENT = any_of("""not urgent, isn't urgent, not at all urgent, nothing urgent, no emergency, non-urgent, nicht
    dringend, nicht eilig, pas urgent, rien d'urgent, no es urgente, no urgente, não é urgente, não urgente, δεν
    είναι επείγον, 緊急ではありません, 至急ではありません, 急ぎではありません, 긴급하지 않""")
_TROUBLE = any_of("""down, broken, breaks, broke, crash*, fails, failed, fire, flood*, leak*, lost, outage, stuck,
    stopped, wrong, kaputt, ausgefallen, brennt, falsch, verloren, hilfe, en panne, cassé*, perdu*, incendie, caído,
    roto, fuego, avaria*, caiu, parado, fogo, χάλασε, φωτιά, λάθος, 故障, 止まっ, 壊れ, 火事, 고장, 멈췄, 화재""")
_ASKS = any_of("""who, whom, whose, what, when, where, which, why, how, is, are, can, could, do, does, did, will,
    would, wer, was, wann, wo, warum, wie, welche*, qui, quand, où, pourquoi, comment, est-ce que, quel*, quién,
    qué, cuándo, dónde, por qué, cómo, quem, quando, onde, porque, como, qual, ποιος, τι, πότε, πού, γιατί, πώς, 誰,
    いつ, どこ, なぜ, 누가, 언제, 어디, 왜""")
_WANTS = any_of("""add, ask, book, call, cancel, change, check, copy, create, delete, draft, file, find, fix,
    forward, get, ignore, let, look, make, move, pay, post, prepare, print, put, read, remind, reply, reserve,
    schedule, send, set, show, tell, translate, update, write, schick*, schreib*, verschieb*, ruf, buche, prüf*,
    envoie*, écri*, réserve*, envía, escribe, llama, envia, escreve, liga, στείλε, γράψε""")
_PLEASE = any_of("""please, kindly, i need, we need, remember to, don't forget, bitte, s'il vous plaît, s'il te
    plaît, svp, por favor, παρακαλώ, ください, お願い, 주세요, 부탁""")
_HOW_ARE_YOU = any_of("""how are you, how's it going, how do you do, what's up, wie geht's, wie geht es dir, wie
    geht es ihnen, ça va, comment allez-vous, qué tal, cómo estás, tudo bem, como está, τι κάνεις, τι κάνετε, お元気,
    元気ですか, 잘 지내""")


# ---- a friendly word

FRIENDLY = {  # language -> (words of greeting, of thanks, of parting); the first of each script or tongue that fits
    "ja": ("こんにちは, おはよう, こんばんは", "ありがとう, 感謝", "さようなら, またね, お疲れ"),
    "ko": ("안녕하세요, 안녕", "감사, 고마워, 고맙", "안녕히, 또 봐요"),
    "el": ("καλημέρα, καλησπέρα, γεια", "ευχαριστ*", "αντίο, τα λέμε"),
    "de": ("hallo, guten morgen, guten tag, moin, servus, grüß*", "danke*, vielen dank",
           "tschüs*, bis morgen, bis bald, schönes wochenende, schönen feierabend"),
    "fr": ("bonjour, bonsoir, salut", "merci*", "au revoir, à demain, à bientôt, bon week-end"),
    "pt": ("olá, oi, bom dia, boa tarde", "obrigad*", "até amanhã, até logo, tchau, bom fim de semana"),
    "es": ("hola, buenos días, buenas tardes", "gracias", "hasta mañana, hasta luego, adiós"),
    "en": ("hello, hi, hey, good morning, good afternoon, good evening, happy birthday, congratulations, well done",
           "thanks, thank you, thx, cheers, great work", "bye, goodbye, see you*, good night, have a nice*"),
}
SAYINGS = {  # language -> a greeting, a *you're welcome*, a farewell, and a word for all else
    "ja": ("こんにちは。", "どういたしまして。", "では、また。", "承知しました。"),
    "ko": ("안녕하세요.", "천만에요.", "또 봐요.", "알겠습니다."),
    "el": ("Γεια σας!", "Παρακαλώ.", "Τα λέμε!", "Εντάξει."),
    "de": ("Hallo!", "Gern geschehen.", "Bis bald!", "Alles klar."),
    "fr": ("Bonjour !", "Je vous en prie.", "À bientôt !", "Bien noté."),
    "pt": ("Olá!", "De nada.", "Até breve!", "Certo."),
    "es": ("¡Hola!", "De nada.", "¡Hasta pronto!", "De acuerdo."),
    "en": ("Hello!", "You're welcome.", "See you soon!", "Noted."),
}
_WAYS = {language: [any_of(listed) for listed in lists] for language, lists in FRIENDLY.items()}
_FRIENDLY = re.compile("|".join(way.pattern for ways in _WAYS.values() for way in ways), re.IGNORECASE)


def small_talk(message: str) -> str:
    """A friendly word in return, in the language of the friendly words in the message; 'Noted.' if there are none."""
    text = message[:READS]
    for language, ways in _WAYS.items():
        said = [saying for way, saying in zip(ways, SAYINGS[language], strict=False) if way.search(text)]
        if said:
            return " ".join(said)
    return SAYINGS["en"][-1]


# ---- the loop

MESSAGE = "\n\nMessage:\n"  # stands between what was gathered beforehand and the message; no gathered line holds it
UNTOLD = "Nobody could be told that this is urgent"
MOST = 3  # lines of a section that are told


def look_up(messages: Sequence[Message], tools: Any = None) -> Reply:
    """What the loop says next: calls of the tools whose section is not there yet; then what the sections say.

    Whoever asks for something to be done is told that nothing here can do it.
    """
    prompt = next(message.content for message in messages if message.role == "user")
    gathered, _, message = prompt.partition(MESSAGE)
    returned = results(messages)
    calls = [] if returned else list(_calls(tools or (), sections(gathered), gathered, message))
    if calls:
        return Reply("", tuple(calls))
    failed = [text.removeprefix("error: ") for text in returned if text.startswith("error: ")]
    told = _told(sections("\n".join([gathered, *returned])), message) + failed
    told[:0] = [line for line in gathered.split("\n") if line.startswith(UNTOLD)]
    if requests(message):
        told = ["That needs a person: I can look things up, and nothing else.", *told]
    return Reply("\n".join(told) or "I found nothing about it in the calendar, the notes or the saved pages.")


def _calls(tools: Sequence[ToolSpec], found: dict[str, list[str]], gathered: str, message: str) -> Iterator[ToolCall]:
    """A call of each tool whose section is not there, or is there for another day."""
    day = _day(message)
    for number, tool in enumerate(tools, 1):
        if tool.name == "list_events" and (day or TOOLS[tool.name] not in found):
            yield ToolCall(str(number), tool.name, {"day": day or _day(gathered)})
        elif TOOLS.get(tool.name) not in found:
            yield ToolCall(str(number), tool.name, {"query": " ".join(words(message))})


_TODAY = any_of("""today, calendar, appointments, heute, kalender, termine, aujourd'hui, calendrier, hoy, calendario,
    hoje, σήμερα, 今日, 予定, 오늘, 일정""")


def _day(text: str) -> str:
    """The first date in the text, YYYY-MM-DD; "" if there is none."""
    found = re.search(r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)", text[:READS])
    return found[0] if found else ""


def _told(found: dict[str, list[str]], message: str) -> list[str]:
    """A line for each item worth telling; of the calendar, which holds a whole day, what shares a word with it."""
    asked, whole_day = set(words(message)), _TODAY.search(message[:READS]) or _day(message)
    events = [line for line in found.get("Calendar", ()) if whole_day or asked & set(words(line))]
    rest = {title: lines[:MOST] for title, lines in found.items() if title != "Calendar"}
    return [f"{title}: {line}" for title, lines in {"Calendar": events, **rest}.items() for line in lines]
