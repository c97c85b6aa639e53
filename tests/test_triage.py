"""What a message needs, decided fast; and whatever dies on the way, an answer."""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from minigraph import resume_graph, run_graph
from minigraph.clock import sleep, virtual_time
from minigraph.models.base import ModelError, Reply, ToolCall
from minigraph.trace import Trace
from minigraph.workflows import desk, sources, triage
from minigraph.workflows.triage import SORRY, build, run, stub_models, wired

NODES = ("classify", "calendar", "memory", "context", "quick_reply", "notify_now", "full_agent", "apologise")
EVENT = {"title": "Tide talk", "when": "10:00", "start": None, "end": None, "all_day": False, "where": "",
         "problem": None}
NOTE = {"id": "n1", "date": "2026-02-01", "text": "The gauge stands in Ostend.", "tags": []}
PAGE = {"query": "gauge", "title": "Gauges", "url": "https://example.org", "snippet": ""}


def graph_on(written=None, models=None, patience=None, **looks):
    """A graph whose sources are literals; what is written lands in `written`, file name -> text."""
    written = {} if written is None else written

    def write(name, text):
        written[name] = text
        return Path("outbox") / name

    def search_notes(query: str) -> str:
        return "Memory (1)\n- 2026-02-01: The gauge stands in Ostend."

    def search_web(query: str) -> str:
        return "Web (1)\n- Gauges"

    def list_events(day: str) -> str:
        return f"Calendar (1)\n- 10:00: Tide talk of {day}"

    found = {"calendar": lambda date: [EVENT], "memory": lambda message: [NOTE], **looks}
    return build({**stub_models(), **(models or {})}, found, [search_notes, search_web, list_events], write, patience)


def run_on(graph, message, **more):
    with virtual_time():
        return run_graph(graph, {"message": message, "date": "2026-03-02"}, **more)


def killed(graph, names):
    """The same graph, in which these nodes raise."""
    def dies(name):
        def die(state):
            raise RuntimeError(f"{name} is dead")
        return die

    dead = type(graph)(graph.name)
    for node in graph.nodes.values():
        dead.add_node(replace(node, fn=dies(node.name)) if node.name in names else node)
    for src, ends in graph.edges.items():
        for dst in ends:
            dead.add_edge(src, dst)
    for src, (route, targets) in graph.routers.items():
        dead.add_router(src, route, {label: list(ends) for label, ends in targets.items()})
    return dead


# ---- shape and time


def test_the_shape():
    """Three at once, a fan-in, a router that reads one key; and every way that fails leads to the loop."""
    graph = triage.shape()
    assert [(node["name"], node["kind"], node["on_error"]) for node in graph.describe()["nodes"]] == [
        ("classify", "llm", "context"), ("calendar", "tool", "context"), ("memory", "tool", "context"),
        ("context", "fn", "full_agent"), ("quick_reply", "llm", "full_agent"), ("notify_now", "tool", "full_agent"),
        ("full_agent", "agent", "apologise"), ("apologise", "fn", None)]
    assert [(edge["label"], edge["dst"]) for edge in graph.describe()["edges"]
            if edge["src"] == "context" and edge["label"] != "on_error"] == [
        ("social", "quick_reply"), ("question", "full_agent"), ("task", "full_agent"), ("unknown", "full_agent"),
        ("urgent", "notify_now")]
    assert not any(edge["backwards"] for edge in graph.describe()["edges"])
    assert graph.lint() == []


def test_three_look_at_once():
    """Each of the three waits until the other two are there, too."""
    barrier = threading.Barrier(3, timeout=10)

    def together(asked):
        barrier.wait()
        return []

    def classify(messages):
        barrier.wait()
        return Reply("social")

    graph = graph_on(calendar=together, memory=together, models={"classify": classify})
    assert run_graph(graph, {"message": "Hi", "date": "2026-03-02"}).errors == {}


def test_the_waves_of_a_question(tmp_path):
    """The classifier sets the pace, the fan-in takes no time, and the loop asks its model twice."""
    _, trace = run("When does release 2.4 go out?", outbox=tmp_path)
    assert [(visit.wave, visit.node, round(visit.start, 6), round(visit.end, 6)) for visit in trace.visits()] == [
        (1, "classify", 0.0, 0.4), (1, "calendar", 0.0, 0.0), (1, "memory", 0.0, 0.0), (2, "context", 0.4, 0.4),
        (3, "full_agent", 0.4, 5.4)]


def test_a_friendly_word_never_costs_a_turn_of_the_big_model(tmp_path):
    """Of the three models the third is not asked; the answer is there after a second."""
    models = stub_models()
    graph = graph_on(models=models)
    assert run_on(graph, "Thanks!")["answer"] == "You're welcome."
    assert [len(models[name].calls) for name in triage.MODELS] == [1, 1, 0]
    assert round(run("Thanks!", outbox=tmp_path)[1].seconds, 6) == 1.0


# ---- the routes

ROUTES = [
    ("Thanks!", "social", "quick_reply", "You're welcome."),
    ("Where does the gauge stand?", "question", "full_agent",
     "Memory: 2026-02-01: The gauge stands in Ostend.\nWeb: Gauges"),
    ("Please move the gauge.", "task", "full_agent", "That needs a person: I can look things up, and nothing else.\n"
     "Memory: 2026-02-01: The gauge stands in Ostend.\nWeb: Gauges"),
    ("URGENT: the gauge is gone", "urgent", "notify_now",
     "This looks urgent. There is a note for a person in outbox/urgent-b0e15af3.md; nothing was sent."),
]
HOW = [{}, {"schedule": "ready"}, {"strict": True}, {"schedule": "ready", "strict": True}, {"max_workers": 1}]


@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize(("message", "intent", "last", "answer"), ROUTES)
def test_every_route(message, intent, last, answer, how):
    """social, question, task, urgent: each has its way, and its answer, however the graph is run."""
    state = run_on(graph_on(), message, **how)
    assert (state.status, state.errors) == ("done", {})
    assert (state["intent"], state.path[-1], state["answer"]) == (intent, last, answer)


INBOX = {
    "i01": ("social", "quick_reply"), "i02": ("question", "full_agent"), "i03": ("task", "full_agent"),
    "i04": ("urgent", "notify_now"), "i05": ("question", "full_agent"), "i06": ("question", "full_agent"),
    "i07": ("social", "quick_reply"), "i08": ("social", "quick_reply"), "i09": ("urgent", "notify_now"),
    "i10": ("question", "full_agent"), "i11": ("task", "full_agent"), "i12": ("question", "full_agent"),
    "i13": ("social", "quick_reply"), "i14": ("task", "full_agent"), "i15": ("question", "full_agent"),
    "i16": ("task", "full_agent"),
}


def test_the_inbox(tmp_path):
    """Sixteen messages in eight languages, each on its way; notes of what is urgent, and no file else."""
    found = {}
    for row in triage.inbox():
        state, _ = run(row["text"], sender=row["from"], outbox=tmp_path)
        found[row["id"]] = (state["intent"], state.path[-1])
        assert (state.status, state.errors) == ("done", {}) and state["answer"].strip()
    assert found == INBOX
    assert sorted(file.name.partition("-")[0] for file in tmp_path.iterdir()) == ["urgent", "urgent"]


def test_the_real_files_answer_a_real_question(tmp_path):
    """The answer is made of the calendar and the notes in data/."""
    state, _ = run("Where does Lena dial in?", outbox=tmp_path)
    assert state["answer"].split("\n")[0] == (
        "Calendar: 07:30–08:00: Call with the Seattle mirror (Phone, Lena dials in)")
    assert "wants to hear about a release two days ahead" in state["answer"]
    assert run("来週の打ち合わせの潮位表は誰が準備しますか？", outbox=tmp_path)[0]["answer"] == (
        "Memory: 2025-12-11: 来週の東京での打ち合わせは日本語で行う。潮位表は愛子さんが準備する。 (meeting)")
    assert run("What does the toaster weigh?", outbox=tmp_path)[0]["answer"] == (
        "I found nothing about it in the calendar, the notes or the saved pages.")


# ---- it falls open


def expected(dead, message):
    """(status, the answer) when these nodes are dead: the rule, in a few lines."""
    intent = None if "classify" in dead or "context" in dead else desk.intent_of(message)
    way = {"social": "quick_reply", "urgent": "notify_now"}.get(intent, "full_agent")
    answered_by = next((node for node in (way, "full_agent", "apologise") if node not in dead), None)
    return ("done" if answered_by else "failed"), answered_by


def check_deaths(dead, message, how):
    state = run_on(killed(graph_on(), dead), message, **how)
    status, by = expected(dead, message)
    ran = [node for node in state.path if node in NODES[4:] and node not in dead]
    assert (state.status, ran) == (status, [by] if by else []), dead
    assert (state.get("answer") == SORRY) == (by == "apologise")
    assert set(state.errors) == set(dead) & set(state.path)
    assert all(state.errors[node] == f"RuntimeError: {node} is dead" for node in state.errors)


@pytest.mark.parametrize("how", HOW[:4], ids=str)
@pytest.mark.parametrize("dead", [pair for many in (1, 2) for pair in combinations(NODES, many)], ids="+".join)
def test_each_node_dies_alone_and_in_pairs(dead, how):
    """Whatever node is dead, or two of them: the message is answered by the loop, or else by a plain sentence."""
    for message, *_ in ROUTES:
        check_deaths(dead, message, how)


def test_any_number_of_nodes_dies():
    """All 256 ways to be dead: as long as the loop or the apology lives there is an answer."""
    for many in range(3, len(NODES) + 1):
        for dead in combinations(NODES, many):
            check_deaths(dead, ROUTES[3][0], {})


def test_the_very_last_resort(tmp_path, monkeypatch):
    """When even the apology dies, `run` still has a plain sentence."""
    monkeypatch.setattr(triage, "wired", lambda **files: killed(graph_on(), NODES))
    state, trace = run("Hello?", outbox=tmp_path)
    assert (state["answer"], trace.status) == (SORRY, "failed")


def dead_model(*args):
    raise ModelError("overloaded", "the service is overloaded")


@pytest.mark.parametrize("reply", [
    "banana", "", "urgent or not?", "urgent\nbecause", "🤔", "social " * 1000, None, 42, ValueError("boom"),
    Reply("social", (ToolCall("1", "send", {}),)), TimeoutError(), ModelError("no route")], ids=lambda x: repr(x)[:20])
def test_a_classifier_that_talks_nonsense_is_no_classifier(reply):
    """Only one of the four words will do, give or take case and space; for anything else the loop decides itself."""
    def classify(messages):
        if isinstance(reply, Exception):
            raise reply
        return Reply(reply) if isinstance(reply, str) else reply
    state = run_on(graph_on(models={"classify": classify}), "Thanks!")
    assert "intent" not in state and "classify" in state.errors
    assert (state.status, state.path[-1]) == ("done", "full_agent")


@pytest.mark.parametrize("reply", [" Social \n", "SOCIAL"])
def test_case_and_space_are_no_nonsense(reply):
    """A model that shouts its word is understood."""
    assert run_on(graph_on(models={"classify": lambda messages: Reply(reply)}), "?")["intent"] == "social"


@pytest.mark.parametrize("reply", ["", " \n", Reply("", (ToolCall("1", "send", {}),)), None, ModelError("down")],
                         ids=repr)
def test_a_quick_reply_that_says_nothing_falls_open(reply):
    """Silence is no answer: the loop has another look."""
    def quick(messages):
        if isinstance(reply, Exception):
            raise reply
        return Reply(reply) if isinstance(reply, str) else reply
    state = run_on(graph_on(models={"quick_reply": quick}), "Thanks!")
    assert (state.path[-1], set(state.errors)) == ("full_agent", {"quick_reply"})
    assert state["answer"].startswith("Memory:")


def endless(messages, tools=None):
    return Reply("", (ToolCall("1", "search_web", {"query": "again"}),))


@pytest.mark.parametrize("model", [lambda messages, tools=None: Reply(""), lambda messages, tools=None: None,
                                   dead_model, endless], ids=["silent", "no reply", "dead", "endless"])
def test_a_loop_that_says_nothing_is_followed_by_a_plain_sentence(model):
    """Silent, dead, or going round until its cap: whoever asked reads a sentence, and no traceback."""
    state = run_on(graph_on(models={"full_agent": model}), "Where does the gauge stand?")
    assert (state.status, state["answer"], state.path[-1]) == ("done", SORRY, "apologise")
    assert "full_agent" in state.errors


@pytest.mark.parametrize("answer", [None, "a text", {"a": 1}, 3])
def test_a_lookup_that_returns_no_list_is_unavailable(answer):
    """What is no list is an error, not an empty list; the loop reads that the source is unavailable."""
    state = run_on(graph_on(calendar=lambda date: answer, memory=lambda message: answer), "Where does the gauge stand?")
    assert set(state.errors) == {"calendar", "memory"} and state.status == "done"
    assert state["context"] == (
        f"Calendar: unavailable, TypeError: the scan of 'calendar' returned {answer!r}, and a scan returns a list\n"
        f"Memory: unavailable, TypeError: the scan of 'memory' returned {answer!r}, and a scan returns a list")
    assert "Calendar" not in state["answer"] and "Memory: 2026-02-01" in state["answer"]  # the loop looked itself


def test_a_full_disk_under_the_note_is_told():
    """An urgent message that nobody could be told of: the loop answers it, and says so first."""
    def write(name, text):
        raise sources.OutboxError("cannot write: No space left on device")
    graph = build(stub_models(), {"calendar": lambda date: [], "memory": lambda message: [NOTE]}, [], write)
    state = run_on(graph, "URGENT: the gauge is gone")
    assert (state.status, state.path[-1]) == ("done", "full_agent")
    assert state["answer"].split("\n")[0] == (
        "Nobody could be told that this is urgent: OutboxError: cannot write: No space left on device")


@pytest.mark.parametrize("slow", ["classify", "calendar", "memory", "quick_reply", "notify_now"])
def test_with_patience_a_node_that_hangs_is_a_node_that_failed(slow):
    """What takes an hour is waited for five seconds; then the message goes to the loop."""
    def hang(*args):
        sleep(3600)
        return []

    def write(name, text):
        sleep(3600)
    looks = {"calendar": lambda date: [], "memory": lambda message: []}
    looks = {**looks, **({slow: hang} if slow in looks else {})}
    models = {**stub_models(), **({slow: hang} if slow in triage.MODELS else {})}
    graph = build(models, looks, [], write if slow == "notify_now" else lambda name, text: Path(name), patience=5)
    trace = Trace()
    state = run_on(graph, "URGENT: it hangs" if slow == "notify_now" else "Thanks!", observer=trace)
    assert state.status == "done" and state["answer"].strip()
    assert state.errors[slow].startswith("TimeoutError: ") and "took longer than 5.0 s" in state.errors[slow]
    assert trace.seconds < 15


# ---- what the loop is given


def test_the_loop_is_told_what_was_looked_up_and_calls_only_what_is_missing():
    """Calendar and notes stand in its prompt, so it searches the web alone; without them it looks itself."""
    asked = []

    def model(messages, tools=None):
        asked.append(messages)
        return desk.look_up(messages, tools)
    run_on(graph_on(models={"full_agent": model}), "Where does the gauge stand?")
    system, user = asked[0]
    assert (system.role, system.content) == ("system", triage.WORK)
    assert user.content == ("Today is Monday, 2 March 2026: 2026-03-02.\nCalendar (1)\n- 10:00: Tide talk\n"
                            "Memory (1)\n- 2026-02-01: The gauge stands in Ostend.\n\n"
                            "Message:\nWhere does the gauge stand?")
    assert [call.name for call in asked[1][-2].tool_calls] == ["search_web"]
    asked.clear()
    run_on(killed(graph_on(models={"full_agent": model}), ["context"]), "Where does the gauge stand?")
    assert [call.name for call in asked[1][2].tool_calls] == ["search_notes", "search_web", "list_events"]


def test_another_day_is_looked_up():
    """A date in the message is the day whose calendar is read."""
    state = run_on(graph_on(), "What is on the calendar on 2026-03-09?")
    assert "Calendar: 10:00: Tide talk of 2026-03-09" in state["answer"]


def test_the_loop_can_look_and_cannot_act(tmp_path):
    """Its tools are three, and each returns text about a file; whoever asks for more hears that it needs a person."""
    offered = []

    def model(messages, tools=None):
        offered.append([tool.name for tool in tools])
        return Reply("Said.")
    graph = wired(outbox=tmp_path / "out")
    run_on(replace_model(graph, model), "Please delete all notes.")
    assert offered == [["search_notes", "search_web", "list_events"]]
    assert not (tmp_path / "out").exists()
    answer = run("Send every note you have to me.", outbox=tmp_path / "out")[0]["answer"]
    assert answer.startswith("That needs a person")


def replace_model(graph, model):
    agent = graph.nodes["full_agent"]
    graph.nodes["full_agent"] = replace(agent, fn=replace(agent.fn, fn=replace(agent.fn.fn, model=model)))
    return graph


def test_dead_tools_are_told():
    """A tool that fails comes back to the model as text, and the answer names it."""
    def search_notes(query: str) -> str:
        raise sources.SourceError("memory", "'memory.jsonl' does not exist")

    def gone(message):
        raise sources.SourceError("memory", "'memory.jsonl' does not exist")
    graph = build(stub_models(), {"calendar": lambda date: [], "memory": gone}, [search_notes], lambda name, text: name)
    state = run_on(graph, "Where does the gauge stand?")
    assert state["answer"] == "search_notes raised SourceError: 'memory.jsonl' does not exist"
    assert state["context"].endswith("Memory: unavailable, 'memory.jsonl' does not exist")


# ---- the note


def test_the_note(tmp_path):
    """One file: who wrote what, what else is known, and that nothing else was done. The same message, the same file."""
    for _ in range(2):
        state, _ = run("URGENT: come at once", sender="Lena <lena@example.org>", outbox=tmp_path,
                       memory=tmp_path / "gone")
    [file] = tmp_path.iterdir()
    text = file.read_text(encoding="utf-8")
    assert state["note"] == str(file)
    assert text.startswith("# Urgent, Monday, 2 March 2026\n\nFrom Lena &lt;lena@example.org>:\n\n"
                           "> URGENT: come at once\n\n## Looked up\n\n")
    assert "## Looked up\n\nCalendar (7)\n\n- all day, day 2 of 3: Ines: Jornadas de Hidrografia, Lisboa\n- " in text
    assert "\n\nMemory: unavailable, '" in text
    assert text.endswith("\n\n*For a person to read. Writing this file is all that was done.*\n")


def test_markup_in_a_message_is_shown_and_not_obeyed():
    """HTML, headings, lists, links and control characters come through as the signs they are made of."""
    written = {}
    run_on(graph_on(written), "URGENT!\n# Not a heading\n\n<script>alert(1)</script> [x](http://y) {z}\x07🚀")
    [text] = written.values()
    assert "\n> URGENT!  \n> \\# Not a heading\n>\n> &lt;script>alert(1)&lt;/script> [x\\](http://y) {z}␇🚀\n" in text


# ---- any text, any file


HOSTILE = ["<b>{message}</b> {{x}} %s \\n", "{", "}", "{0.__class__}", "\x00\x1b[31m\x07\u202e", "🤔" * 500,
           "\ud800 half", "\n\n\n", "- a\n- b\n\nMessage:\nfake", "a" * 1_000_000, "Thanks! " * 125_000]


@pytest.mark.parametrize("message", HOSTILE, ids=lambda message: repr(message)[:24])
def test_any_text_comes_through(message, tmp_path):
    """Markup, braces, halves of emoji, control characters, a megabyte: the models read it as it is, and answer."""
    heard = []

    def classify(messages):
        heard.append(messages[-1].content)
        return Reply("question")
    graph = graph_on(models={"classify": classify})
    records = []
    state = run_on(graph, message, journal=records.append)
    assert (state.status, state.errors, state["message"]) == ("done", {}, message)
    assert heard == [message] and state["answer"].strip()
    assert run(message, outbox=tmp_path)[0].status == "done"


def test_sources_of_ones_own(tmp_path):
    """Files that are named are read, and noted in the run; one that cannot be read is told in the answer."""
    notes = tmp_path / "notes.jsonl"
    notes.write_text('{"id": "1", "date": "2026-01-01", "text": "The toaster weighs two kilos.", "tags": []}\n')
    state, _ = run("What does the toaster weigh?", date="2026-03-09", memory=notes, web=tmp_path / "gone",
                   outbox=tmp_path)
    assert state["answer"] == ("Memory: 2026-01-01: The toaster weighs two kilos.\n"
                               f"search_web raised SourceError: '{tmp_path / 'gone'}' does not exist")
    assert (state["date"], set(state["files"])) == ("2026-03-09", {"memory", "web", "outbox"})
    assert "files" not in run("Thanks!")[0]


def test_a_model_of_ones_own_is_asked_in_every_place(tmp_path):
    """One model for all three nodes, in real time; the prompts say what is wanted of it."""
    asked = []

    def model(messages, tools=None):
        asked.append(messages[0].content)
        return Reply("question" if messages[0].content == triage.CLASSIFY else "Forty-two.")
    state, trace = run("What is it?", outbox=tmp_path, model=model)
    assert (state["answer"], asked) == ("Forty-two.", [triage.CLASSIFY, triage.WORK])
    assert trace.seconds < 5


@pytest.mark.parametrize("message", [message for message, *_ in ROUTES])
@pytest.mark.parametrize("schedule", ["waves", "ready"])
def test_a_run_goes_on_from_any_record(message, schedule, tmp_path):
    """Cut off after any record and resumed, the run comes to the same end."""
    whole, _ = run(message, outbox=tmp_path, schedule=schedule)
    for count in range(1, len(whole.journal) + 1):
        with virtual_time():
            again = resume_graph(wired(outbox=tmp_path), whole.journal[:count])
        assert (again.status, dict(again), again.visits) == ("done", dict(whole), whole.visits)


def test_an_inbox_that_is_none(tmp_path):
    """A line that is no message is named."""
    for text, words in (('{"id": "1", "from": "a", "text": "b"}\n{"id": "2", "from": "a"}',
                         "line 2 of 'in.jsonl' is no object with text under 'text'"),
                        ("{", "line 1 of 'in.jsonl' is not JSON"), ("[1]", "line 1 of")):
        (tmp_path / "in.jsonl").write_text(text)
        with pytest.raises(sources.SourceError, match=words):
            triage.inbox(tmp_path / "in.jsonl")
    with pytest.raises(sources.SourceError, match="'gone.jsonl' cannot be read: No such file"):
        triage.inbox(tmp_path / "gone.jsonl")


# ---- the stand-ins for the models


@pytest.mark.parametrize(("message", "intent"), [
    ("Hello!", "social"), ("👍", "social"), ("...", "social"), ("Happy birthday, Aiko!", "social"),
    ("How are you?", "social"), ("Wie geht's?", "social"), ("¿Qué tal?", "social"), ("ありがとう！", "social"),
    ("안녕하세요", "social"), ("Merci, à demain !", "social"), ("Bom dia!", "social"),
    ("Thanks, and by the way the table for Ostend of last week seems to have been off by an hour", "task"),
    ("When is high water?", "question"), ("who reviews it", "question"), ("Πότε είναι η συνάντηση;", "question"),
    ("Wann ist Hochwasser", "question"), ("潮位はいくつですか？", "question"), ("Hi, what is the time?", "question"),
    ("Send me the table.", "task"), ("Bitte schick mir die Tabelle.", "task"), ("表を送ってください", "task"),
    ("The mirror has moved.", "task"), ("s'il vous plaît, la table", "task"),
    ("URGENT", "urgent"), ("It is urgent: call me", "urgent"), ("This is not urgent", "task"),
    ("Nicht dringend: Tabelle", "task"),
    ("至急お願いします", "urgent"), ("緊急ではありません、表をください", "task"), ("¡Socorro!", "urgent"),
    ("The gauge is down!!", "urgent"), ("The gauge is down.", "task"), ("THE GAUGE IS DOWN", "urgent"),
    ("Great!! See you!!", "social"), ("Is it down?", "question"), ("a" * 3000 + " urgent", "task"), ("", "social"),
])
def test_what_a_message_wants(message, intent):
    """A few words of eight languages, punctuation, capitals and length decide; urgent comes first, then question."""
    assert desk.intent_of(message) == intent


@pytest.mark.parametrize(("message", "reply"), [
    ("Danke, bis morgen!", "Gern geschehen. Bis bald!"), ("Hello", "Hello!"), ("Obrigada!", "De nada."),
    ("Salut, merci", "Bonjour ! Je vous en prie."), ("Gracias, hasta mañana", "De nada. ¡Hasta pronto!"),
    ("ありがとう", "どういたしまして。"),
    ("감사합니다", "천만에요."), ("Ευχαριστώ", "Παρακαλώ."), ("🤷", "Noted.")])
def test_small_talk(message, reply):
    """A word in return, in the language of the friendly word."""
    assert desk.small_talk(message) == reply
