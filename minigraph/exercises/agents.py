"""Notebook 08: a loop that survives its tools and its model, and what a growing conversation costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..checks import Exercise, Wrong, is_function, is_number
from ..clock import sleep, virtual_time
from ..models.base import Message, Reply, ToolCall
from ..models.stub import ScriptedModel

KM = {("Lisbon", "Porto"): 313, ("Porto", "Vigo"): 153, ("Vigo", "Lugo"): 191}  # (from, to) -> kilometres by road


def distance(start: str, end: str) -> int:
    """Kilometres by road from one town to the next."""
    sleep(1)
    return KM[start, end]


def wants(*legs: str) -> Reply:
    """The reply of a model that asks for these legs, as in wants("Lisbon-Porto", "Porto-Vigo")."""
    calls = [ToolCall(leg, "distance", dict(zip(("start", "end"), leg.split("-"), strict=True))) for leg in legs]
    return Reply("", tuple(calls))


# ---- agents-1

ENOUGH = 50  # model calls


class Runaway(BaseException):
    """The loop goes on and on; no `except Exception` may swallow that."""


def endless(messages: Any, tools: Any) -> Reply:
    """Asks for the same leg for ever."""
    return wants("Lisbon-Porto")


def driven(answer: Callable[..., Any], script: Any, most: int = 10) -> tuple[Any, ScriptedModel]:
    """What the student's loop returned, and the model, which knows what it was asked."""
    model = ScriptedModel(script)

    def counted(messages: Any, tools: Any = None) -> Reply:
        if len(model.calls) == ENOUGH:
            raise Runaway
        return model(messages, tools)

    with virtual_time():
        return answer(counted, {"distance": distance}, "How far is it?", most), model


def check_loop(answer: Any) -> str | None:
    return is_function(answer) or wrong_with_tools(answer) or wrong_end(answer)


def wrong_with_tools(answer: Any) -> str | None:
    unheard = Reply("", (ToolCall("c", "fly", {}),))
    said = ""
    for name, bad in (("Atlantis", wants("Lisbon-Porto", "Lisbon-Atlantis")), ("fly", unheard)):
        try:
            said, model = driven(answer, [bad, "313 km."])
        except Runaway:
            return f"the model said that it is done, and was still asked {ENOUGH} times: what ends the loop?"
        except Exception as error:
            return f"the model asked for {name!r}, and the loop died of it ({type(error).__name__}: {error})"
        if len(model.calls) < 2:
            return f"the model asked for {name!r}, and was not told what happened: the loop returned {said!r} at once"
        if wrong := wrong_answers(model.calls[1].messages, bad, name):
            return wrong
    return None if said == "313 km." else f"the model ended with '313 km.', and the loop returned {said!r}"


def wrong_answers(messages: list[Message], reply: Reply, name: str) -> str | None:
    """What is wrong with the tools' messages that follow the reply."""
    told = {message.tool_call_id: message.content for message in messages if message.role == "tool"}
    if reply.tool_calls[0].name == "distance" and told.get("Lisbon-Porto") != "313":
        return f"Lisbon-Porto is 313 km, and the model reads {told.get('Lisbon-Porto')!r}: the good result must stay"
    failed = told.get(reply.tool_calls[-1].id)
    if failed is None:
        return f"the call with {name!r} got no answer: every call of a tool is owed a message with its tool_call_id"
    if not failed.startswith("error") or name not in failed:
        return f"the call with {name!r} failed, and the model reads {failed!r}: begin with 'error: ', and say which"
    return None


def wrong_end(answer: Any) -> str | None:
    try:
        said, model = driven(answer, endless, 3)
    except Runaway:
        return f"with most=3, the loop asks the model {ENOUGH} times and more: what ends it, if the model never does?"
    if len(model.calls) != 3:
        return f"most=3 allows three calls of the model, and there were {len(model.calls)}"
    if "stopped" not in str(said).lower():
        return f"the loop was cut short and returns {said!r}: nobody is told; say that it was stopped"
    return None


TEN_LINES = """\
from minigraph.models import Message
def answer(model, tools, text, most):
    messages = [Message("user", text)]
    {head}
        reply = model(messages)
        messages.append(Message("assistant", reply.text, reply.tool_calls))
        if not reply.tool_calls:
            return reply.text
        for call in reply.tool_calls:
            {body}
            messages.append(Message("tool", str(result), tool_call_id=call.id))
    {tail}
"""
BARE = "result = tools[call.name](**call.arguments)"
GUARDED = """\
try:
                result = tools[call.name](**call.arguments)
            except Exception as problem:
                result = f"error: {call.name}: {problem!r}\""""


def ten_lines(head: str = "for _ in range(most):", body: str = GUARDED,
              tail: str = 'return f"stopped after {most} calls"') -> str:
    """Source of the loop, with its parts."""
    return TEN_LINES.replace("{head}", head).replace("{body}", body).replace("{tail}", tail)


def guarded(handling: str) -> str:
    """Source of the loop that does this about a failure."""
    return ten_lines(body=GUARDED.replace('result = f"error: {call.name}: {problem!r}"', handling))


LOOP = Exercise(
    name="agents-1",
    statement="""\
Make the ten lines safe: `answer(model, tools, text, most)`. A tool that raises, or that does not exist, becomes a text
for the model: it begins with `error: ` and says what was wrong. And after `most` calls of the model the loop ends, and
returns a text with the word *stopped*.""",
    todo="put answer = loop below the ten lines, which take a fourth argument, most",
    check=check_loop,
    why="Every call gets an answer, the model reads what went wrong, and the end is not the model's to choose.",
    hints=[
        "while True has no end of its own. for _ in range(most) has, and what comes after it runs at the cap.",
        "try: result = tools[call.name](**call.arguments), with the look-up of the tool inside.",
        'except Exception as problem: result = f"error: {call.name}: {problem!r}". The message is appended either way.',
    ],
    solution=ten_lines(),
    wrong={
        "as it was": Wrong(ten_lines("while True:", BARE), "the loop died of it"),
        "no end": Wrong(ten_lines("while True:"), "if the model never does"),
        "nothing said": Wrong(ten_lines(tail="return reply.text"), "nobody is told"),
        "one too many": Wrong(ten_lines("for _ in range(most + 1):"), "allows three calls"),
        "a silent error": Wrong(guarded('result = ""'), "begin with 'error: '"),
        "an error without a reason": Wrong(guarded('result = "error: it failed"'), "and say which"),
        "no answer": Wrong(guarded("continue"), "is owed a message"),
        "giving up": Wrong(guarded('return "error"'), "was not told what happened"),
    })


# ---- agents-2


def check_tokens(answer: Any) -> str | None:
    wrong = is_number(answer, "a number of tokens")
    if wrong:
        return wrong
    if answer == 10_000:
        return None
    if answer == 1_000:
        return "1,000 is one message a call: but a model remembers nothing; what is it sent with the second call?"
    if answer in (1_900, 2_000):
        return f"{answer:,} counts every message once: the first one, say, is sent with each of the ten calls"
    if answer == 5_500:
        return "5,500 adds one message from call to call: there are two, what the model wanted and what the tool said"
    if answer == 100:
        return "100 is how many messages it reads, and each has 100 tokens"
    if answer in (11_000, 12_000, 12_100):
        return f"{answer:,} is a little too much: the first call reads one message, the user's, and the second three"
    return f"{answer:,} tokens: the first call reads one message, the second three; how many does the tenth read?"


TOKENS = Exercise(
    name="agents-2",
    statement="""\
A loop calls its model ten times: nine times it wants one tool, the tenth time it is done. Say every message has 100
tokens. How many tokens does the model **read**, all ten calls together?""",
    todo="put a number in place of the three dots",
    check=check_tokens,
    why="It reads 1, 3, 5, ... 19 messages, and that is ten times ten: the cost grows with the square of the calls.",
    hints=[
        "A model remembers nothing: with every call it is sent the whole conversation. How long is that at first?",
        "Between two calls two messages are added: what the model wanted, and what the tool said.",
        "Run it: a ScriptedModel keeps what it was asked in .calls, and each of these has .messages.",
    ],
    solution="""\
from minigraph.clock import virtual_time
from minigraph.exercises.agents import distance, wants
from minigraph.loop import run_loop
from minigraph.models import ScriptedModel

model = ScriptedModel([*[wants("Lisbon-Porto")] * 9, "313 km."])
with virtual_time():
    run_loop(model, [distance], "How far is it?")
answer = sum(100 * len(asked.messages) for asked in model.calls)
""",
    wrong={
        "one message a call": Wrong("answer = 10 * 100", "remembers nothing"),
        "every message once": Wrong("answer = 20 * 100", "counts every message once"),
        "one more a call": Wrong("answer = 100 * sum(range(1, 11))", "adds one message from call to call"),
        "messages": Wrong("answer = 100", "each has 100 tokens"),
        "from two on": Wrong("answer = 100 * sum(range(2, 22, 2))", "a little too much"),
    })

EXERCISES = [LOOP, TOKENS]
