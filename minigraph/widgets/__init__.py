"""What moves in a notebook: a run that is watched or stepped through, sliders for what would be, a question in advance.

    from minigraph.widgets import live, step
    state = live(graph, {})             # the picture and the cards change while it runs
    step(trace)                         # a slider through a finished run

Each is an ordinary function with controls around it; without ipywidgets there is a still in their place.
"""

from .approve import approve
from .live import live
from .predict import predict
from .step import step
from .whatif import whatif

__all__ = ["approve", "live", "predict", "step", "whatif"]
