"""The command line is the library, typed: each command calls a function that a program could call as well.

    python -m minigraph gather              the graph, the loop beside it, and what their traces say
    python -m minigraph draw gather         the graph in words; --png FILE for a picture
    python -m minigraph trace run.jsonl     the table of a run that was saved with --trace
    python -m minigraph triage "Danke!"     a message answered; content and leads are workflows, too (cli_runs.py)
    python -m minigraph doctor              what this machine lacks, and the command that brings it

It runs on Python alone. What needs more says which extra brings it. Bad input is one sentence on standard error, and
exit code 1; a source that cannot be read is no bad input, but a line in the digest. A run that waits is exit code 3.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import __version__, cli_runs
from .runs import WORKFLOWS, shape_of
from .shape import Graph, GraphError
from .terminal import Complaint, listed, note, reason, say, say_json, say_where
from .trace import Trace

EPILOG = """\
examples:
  python -m minigraph gather                         four sources at once, by a graph; then the same by a loop
  python -m minigraph gather --calendar mine.ics     your own calendar, today
  python -m minigraph gather --speed 10              in real time, ten times as fast as it was measured
  python -m minigraph gather --trace run.jsonl       keep what happened; `trace run.jsonl` shows it again
  python -m minigraph compare --json | jq .ratio     the figures, for a program
  python -m minigraph triage "Danke, bis morgen!"    a message: a friendly word, the agent loop, or a note for a person
  python -m minigraph content "It is the BEST!!!"    a text: checked, mended, and saved or shown to a person
  python -m minigraph leads c01                      a contact, scored; without a name: who there is
  python -m minigraph runs                           the runs of these three, and which of them wait for a person
  python -m minigraph resume content-1 --answer person=publish     what the person says; `history` shows the records
  python -m minigraph draw gather --png graph.png    the graph as a picture
  python -m minigraph draw my_project.flow:graph     a graph of your own, by module and name
  python -m minigraph notebooks my_notebooks --lab   the course, without its answers, in JupyterLab
  python -m minigraph new my_project                 a project of your own that runs at once
  python -m minigraph doctor                         what is missing here, and what brings it
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code: 0, 1 for bad input, 3 for a run that waits, or 130 when interrupted."""
    options = _parser().parse_args(argv)
    try:
        return int(options.command(options) or 0)
    except (Complaint, GraphError) as error:
        note(f"minigraph: {error}")
        return 1
    except KeyboardInterrupt:
        note("minigraph: interrupted")
        return 130
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="minigraph", description=(__doc__ or "").split("\n")[0], epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"minigraph {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    gather = commands.add_parser("gather", help="the graph gathers four sources at once and writes a digest",
                                 description="Runs the morning routine as a graph: four sources at once, one model "
                                             "call, a digest in the outbox. Then an agent loop does the same job, "
                                             "and both are compared. The model is a stub, and times are those in "
                                             "data/measured/, in virtual time: nobody waits.")
    gather.add_argument("--alone", action="store_true", help="only the graph, without the loop beside it")
    gather.add_argument("--schedule", choices=["waves", "ready"], default="waves",
                        help="waves: all ready nodes together, then a barrier; ready: each as soon as it can")
    _job_options(gather, _gather)

    brief = commands.add_parser("brief", help="an agent loop does the same job, one call after another",
                                description="Runs the morning routine as an agent loop: the model decides what to "
                                            "read, one call after another, and when it has enough.")
    _job_options(brief, _brief)

    compare = commands.add_parser("compare", help="the graph against the loop, in figures",
                                  description="Runs both and prints the figures; each is computed from the traces.")
    _job_options(compare, _compare)

    cli_runs.add_commands(commands, _picture_options, _save, _graph_of)

    draw = commands.add_parser("draw", help="a graph as words, DOT, Mermaid or a picture",
                               description="Draws a graph from the same data that runs.")
    draw.add_argument("workflow", metavar="WORKFLOW", help=f"{', '.join(WORKFLOWS)}, or module:name for one of yours")
    draw.add_argument("--trace", metavar="FILE.jsonl", help="a saved run of it: draw what ran, how often, what failed")
    draw.add_argument("--format", choices=["text", "dot", "mermaid", "json"], default="text",
                      help="what to print (default: text)")
    _picture_options(draw)
    draw.set_defaults(command=_draw)

    trace = commands.add_parser("trace", help="a saved run as a table, or a chart",
                                description="Shows a run that was saved with --trace FILE or Trace.to_jsonl.")
    trace.add_argument("file", metavar="FILE.jsonl")
    trace.add_argument("--json", action="store_true", help="print the visits and calls as JSON")
    _picture_options(trace)
    trace.set_defaults(command=_trace)
    _kit_commands(commands)
    return parser


def _kit_commands(commands: Any) -> None:
    notebooks = commands.add_parser("notebooks", help="a copy of the course to write in, without outputs",
                                    description="Copies the course to a folder, without outputs, so that no answer "
                                                "stands there before its question. A file that is there already "
                                                "stays as it is.")
    notebooks.add_argument("folder", metavar="DIR", nargs="?", default="my_notebooks",
                           help="where to (default: my_notebooks); it is made")
    notebooks.add_argument("--solutions", action="store_true", help="with the solutions and the instructor's guide")
    notebooks.add_argument("--force", action="store_true", help="replace files that are there and differ")
    notebooks.add_argument("--lab", action="store_true", help="then open JupyterLab there")
    notebooks.add_argument("--install", metavar="WHAT",
                           help="with a first cell %%pip install WHAT, for Colab; WHAT is for instance "
                                "'minigraph[pictures] @ git+https://...'")
    notebooks.set_defaults(command=_notebooks)

    new = commands.add_parser("new", help="a project of your own: a graph, a test, a notebook",
                              description="Writes a small project that runs at once, into a new folder.")
    new.add_argument("folder", metavar="NAME", help="a new folder, for instance my_project")
    new.set_defaults(command=_new)

    doctor = commands.add_parser("doctor", help="what works here, what is missing, and what brings it",
                                 description="Tries what the course needs: the engine, a kernel, a picture, the "
                                             "full-text search, a file in ./outbox. Exit code 1 only if the core, "
                                             "Python and the engine, does not work.")
    doctor.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    doctor.add_argument("--seconds", type=float, default=60, metavar="N",
                        help="how long a kernel may take to start and to compute (default: 60)")
    doctor.set_defaults(command=_doctor)

    site = commands.add_parser("site", help="the course as HTML pages, to be read without installing anything",
                               description="Writes the course, with its outputs, as HTML pages that load nothing "
                                           "from the network.")
    site.add_argument("folder", metavar="DIR", nargs="?", default="site", help="where to (default: site)")
    site.add_argument("--solutions", action="store_true", help="with the solutions and the instructor's guide")
    site.set_defaults(command=_site)

    slides = commands.add_parser("slides", help="the cells tagged `slide`, as slides",
                                 description="Writes a deck for each notebook: one HTML file, with reveal.js in it.")
    slides.add_argument("folder", metavar="DIR", nargs="?", default="slides", help="where to (default: slides)")
    slides.add_argument("--reveal", metavar="DIR", help="a copy of reveal.js (default: that of sphinx-revealjs)")
    slides.set_defaults(command=_slides)


def _job_options(parser: argparse.ArgumentParser, command: Callable[[argparse.Namespace], int | None]) -> None:
    parser.set_defaults(command=command)
    files = parser.add_argument_group("what to read (default: the files in data/)")
    files.add_argument("--calendar", metavar="FILE", help="a calendar, .ics")
    files.add_argument("--github", metavar="FILE", help="pulls and issues, as GitHub's REST interface answers")
    files.add_argument("--memory", metavar="FILE", help="notes, a JSON object a line: id, date, text, tags")
    files.add_argument("--web", metavar="FILE", help="saved search results, JSON")
    files.add_argument("--query", metavar="WORDS", help="what to look for in the memory")
    files.add_argument("--date", metavar="YYYY-MM-DD",
                       help="the day (default: the day data/ was made for, or today with a calendar of yours)")
    out = parser.add_argument_group("what to write")
    out.add_argument("--outbox", metavar="DIR", default="outbox", help="where the digest goes (default: ./outbox)")
    out.add_argument("--trace", metavar="FILE", help="also save what happened, an event a line")
    out.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    _picture_options(out)
    time = parser.add_argument_group("time").add_mutually_exclusive_group()
    time.add_argument("--speed", type=float, metavar="N",
                      help="run in real time, N times as fast as measured (default: virtual time)")
    time.add_argument("--unmeasured", action="store_true", help="leave the recorded times out: all takes what it takes")


def _picture_options(parser: Any) -> None:
    parser.add_argument("--png", metavar="FILE", help="draw it")
    parser.add_argument("--svg", metavar="FILE", help="draw it")


# ---- commands


def _gather(options: argparse.Namespace) -> None:
    from .workflows import gather
    state, graph = _run(gather.run, options, schedule=options.schedule)
    loop = None if options.alone else _run(_workflow_run("brief"), options)[1]
    if options.json:
        say_json({"digest": state.get("digest"), "status": state.status, "errors": state.errors,
                  "visits": _rows(graph.visits()), "seconds": graph.seconds,
                  "comparison": _figures(graph, loop).to_dict() if loop else None})
    else:
        print(_titled("The graph: its shape says what is read", _graph_of("gather").to_text(), str(graph)))
        if loop:
            print(_titled("The loop: the model says what is read", str(loop)))
            print(_titled("Side by side", _in_words(options, _figures(graph, loop))))
        say_where(state.get("digest"), "there is nothing to say today, so no digest was written")
    _save(options, [graph, loop] if loop else [graph])
    _exit_if_failed(state, options)


def _brief(options: argparse.Namespace) -> None:
    state, loop = _run(_workflow_run("brief"), options)
    if options.json:
        say_json({"digest": state["digest"], "read": state["read"], "not_read": state["not_read"],
                  "calls": _rows(loop.calls()), "seconds": loop.seconds})
    else:
        print(_titled("The loop: the model says what is read", str(loop)))
        print(f"it read {listed(state['read'])}, and not {listed(state['not_read'])}")
        say_where(state["digest"], "")
    _save(options, [loop])


def _compare(options: argparse.Namespace) -> None:
    from .workflows import gather
    graph, loop = _run(gather.run, options)[1], _run(_workflow_run("brief"), options)[1]
    figures = _figures(graph, loop)
    if options.json:
        say_json(figures.to_dict())
    else:
        print(_in_words(options, figures))
    _save(options, [graph, loop])


def _draw(options: argparse.Namespace) -> None:
    from . import draw
    graph = _graph_of(options.workflow)
    run = _saved_trace(options.trace) if options.trace else None
    if options.format == "json":
        say_json(graph.describe())
    elif not (options.png or options.svg) or options.format != "text":
        say({"text": draw.to_text, "dot": draw.to_dot, "mermaid": draw.to_mermaid}[options.format](graph, run))
    for path in filter(None, [options.png, options.svg]):
        _write_picture(path, lambda path: draw.draw(graph, run).save(path))


def _trace(options: argparse.Namespace) -> None:
    trace = _saved_trace(options.file)
    if options.json:
        say_json({"name": trace.name, "status": trace.status, "seconds": trace.seconds,
                  "visits": _rows(trace.visits()), "calls": _rows(trace.calls())})
    elif not (options.png or options.svg):
        say(str(trace))
    options.trace = None
    _save(options, [trace])


def _saved_trace(path: str) -> Trace:
    try:
        trace = Trace.from_jsonl(path)
        str(trace)  # a file of other events is found out when it is read
    except (OSError, UnicodeDecodeError) as error:
        raise Complaint(f"{path}: {reason(error)}") from None
    except ValueError as error:
        raise Complaint(str(error)) from None
    except (KeyError, TypeError, AttributeError) as error:
        raise Complaint(f"{path} is no trace of minigraph's: an event in it lacks {error}") from None
    if not len(trace):
        raise Complaint(f"{path} holds no event")
    return trace


def _notebooks(options: argparse.Namespace) -> int:
    from . import kit
    copied = _done(kit.copy_course, options.folder, solutions=options.solutions, force=options.force,
                   install=options.install)
    if copied.written:
        print(f"copied to {copied.folder}: {listed(copied.written)}")
    if copied.kept:
        print(f"kept as {'it is' if len(copied.kept) == 1 else 'they are'}, because of what you may have written "
              f"there: {listed(copied.kept)} (--force replaces)")
    if not copied.written and not copied.kept:
        print(f"{copied.folder} holds the course already")
    return int(_done(kit.open_lab, copied.folder)) if options.lab else 0


def _new(options: argparse.Namespace) -> None:
    from . import kit
    project = _done(kit.new_project, options.folder)
    python = kit.python_command(elsewhere=True)
    print(f"wrote {project.folder}: {listed(project.files)}\n\n"
          f"  cd {kit.quoted(project.folder)}\n"
          f"  {python} test_flow.py\n"
          f"  {python} -m minigraph draw {project.package}.flow:graph\n"
          f"  {python} -m jupyterlab flow.ipynb")


def _doctor(options: argparse.Namespace) -> int:
    from . import doctor
    report = doctor.examine(options.seconds)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a path may hold letters that this terminal has not
    if options.json:
        say_json(report.to_dict())
    else:
        print(report)
    return 0 if report.works else 1


def _site(options: argparse.Namespace) -> None:
    from . import pages
    _say_written(_done(pages.write_site, options.folder, solutions=options.solutions))


def _slides(options: argparse.Namespace) -> None:
    from . import pages
    _say_written(_done(pages.write_slides, options.folder, reveal=options.reveal))


def _done(make: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """What `make` returns; that it cannot be done is a complaint."""
    try:
        return make(*args, **more)
    except (ValueError, OSError) as error:
        raise Complaint(reason(error)) from None


def _say_written(written: Any) -> None:
    print(f"wrote {len(written.files)} pages; open {written.folder / 'index.html'}")
    if written.complaints:
        raise Complaint("some of it is wrong:\n  " + "\n  ".join(written.complaints))


# ---- helpers


def _graph_of(name: str) -> Graph:
    """The graph of a workflow, wired to nothing, or the one at module:name."""
    if name in WORKFLOWS:
        return shape_of(name)
    module, colon, attribute = name.partition(":")
    if not colon:
        raise Complaint(f"no workflow {name!r}: there is {', '.join(WORKFLOWS)}, or name one of yours as module:name")
    sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), attribute)
        found = found() if callable(found) else found
    except Exception as error:
        raise Complaint(f"{name!r} cannot be loaded: {type(error).__name__}: {error}") from None
    finally:
        sys.path.remove(os.getcwd())
    if not isinstance(found, Graph):
        raise Complaint(f"{name!r} is {found!r}, and no Graph")
    return found


def _workflow_run(name: str) -> Callable[..., Any]:
    return importlib.import_module(f".workflows.{name}", __package__).run  # type: ignore[no-any-return]


def _run(run: Callable[..., Any], options: argparse.Namespace, **more: Any) -> Any:
    """What a workflow's `run` returns; in real time every step is reported as it ends."""
    trace = _Told() if options.speed and sys.stderr.isatty() else Trace()
    try:
        return run(options.date, options.calendar, options.github, options.memory, options.web, options.outbox,
                   query=options.query, measured=not options.unmeasured, speed=options.speed, trace=trace, **more)
    except (ValueError, OSError) as error:
        raise Complaint(reason(error)) from None


class _Told(Trace):
    """A trace that says on standard error what ends, when it ends."""

    def __call__(self, kind: str, event: dict[str, Any]) -> None:
        super().__call__(kind, event)
        if kind in ("node_end", "llm", "tool"):
            name = event["node"] if kind == "node_end" else f"{kind} {event.get('name', '')}"
            print(f"  {event['t']:7.3f} s  {name}", file=sys.stderr, flush=True)


def _figures(graph: Trace, loop: Trace) -> Any:
    from .workflows import comparison
    return comparison.compare(graph, loop)


def _in_words(options: argparse.Namespace, figures: Any) -> str:
    from .workflows import comparison
    lines = [str(figures), *([] if options.unmeasured else comparison.ASSUMPTIONS)]
    return "\n".join([*lines, *([_against_virtual_time(options, figures)] if options.speed else [])])


def _against_virtual_time(options: argparse.Namespace, figures: Any) -> str:
    """How far a run in real time is from the same run in virtual time."""
    from .workflows import gather
    with tempfile.TemporaryDirectory() as aside:
        virtual = argparse.Namespace(**{**vars(options), "speed": None, "outbox": aside})
        exact = _figures(_run(gather.run, virtual)[1], _run(_workflow_run("brief"), virtual)[1])
    apart = abs(figures.ratio / exact.ratio - 1)
    return (f"Checked: in real time, at speed {options.speed:g}, gathering is {figures.ratio:.2f} times as fast, in "
            f"virtual time {exact.ratio:.2f}: {apart:.1%} apart.")


def _save(options: argparse.Namespace, traces: list[Trace]) -> None:
    """Writes what was asked for: the trace of the first run, and the chart of all."""
    if options.trace:
        try:
            traces[0].to_jsonl(options.trace)
        except OSError as error:
            raise Complaint(f"{options.trace}: {reason(error)}") from None
        say_where(options.trace, "")
    paths = list(filter(None, [options.png, options.svg]))
    if not paths:
        return
    from . import gantt
    marks = [_gathered(trace) for trace in traces]
    labels = ["graph" if trace.nodes else "loop" for trace in traces] if len(traces) > 1 else None
    for path in paths:
        _write_picture(path, lambda path: gantt.chart(traces, labels=labels, marks=marks).save(path))


def _gathered(trace: Trace) -> list[tuple[str, float]]:
    """The moment at which a trace has gathered: its last scan, or its last tool call."""
    ends = [visit.end for visit in trace.visits() if visit.node.startswith("scan_")]
    ends = ends or [call.end for call in trace.calls() if call.kind == "tool" and call.node is None]
    return [("gathered", max(ends))] if ends else []


def _write_picture(path: str, save: Callable[[str], Any]) -> None:
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        save(path)
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        raise Complaint(f"no picture {path}: {reason(error)}") from None
    say_where(path, "")


def _exit_if_failed(state: Any, options: argparse.Namespace) -> None:
    if state.status == "failed" and not state.get("digest"):
        raise Complaint("no digest: " + "; ".join(f"{node}: {text}" for node, text in state.errors.items()))


def _titled(title: str, *parts: str) -> str:
    return "\n\n".join([f"{title}\n{'-' * len(title)}", *parts]) + "\n"


def _rows(found: Sequence[Any]) -> list[dict[str, Any]]:
    return [vars(row) for row in found]
