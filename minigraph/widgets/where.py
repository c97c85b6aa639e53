"""Where are we: can something move here, or is this a run that nobody watches?

    can_move()          # True in a notebook with ipywidgets, unless MINIGRAPH_HEADLESS is set

Asked at every call, never when a module is loaded: what is set later counts.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import Any


def can_move() -> bool:
    """Can widgets be shown here? Not without ipywidgets, and not where MINIGRAPH_HEADLESS is set."""
    return not os.environ.get("MINIGRAPH_HEADLESS") and find_spec("ipywidgets") is not None


def in_a_kernel() -> bool:
    """Does a Jupyter kernel run this, so that somebody can be shown something while it runs?"""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def show(thing: Any) -> None:
    """Shows it as the output of the cell, or prints it where there is no notebook."""
    if in_a_kernel():
        from IPython.display import display

        display(thing)  # type: ignore[no-untyped-call]
    else:
        print(thing)
