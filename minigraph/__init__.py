"""minigraph: agent graphs you can read. `from minigraph import Graph, START, END, run_graph`."""

from .engine import END, START, Graph, GraphError, GraphState, JournalError, Node, StateCollision, emit, run_graph
from .resume import resume_graph

__all__ = ["START", "END", "Graph", "Node", "GraphState", "run_graph", "resume_graph", "emit", "GraphError",
           "StateCollision", "JournalError"]
__version__ = "0.1.0"
