"""Models behind one seam: whoever answers, a node or a loop asks in the same words.

    from minigraph.models import Reply, ScriptedModel

| module | the model |
|---|---|
| base | what is said: Message, ToolCall, Reply, ToolSpec, ModelError |
| stub | ScriptedModel, which answers from a script, with declared latencies |
"""

from .base import Message, Model, ModelError, Reply, ToolCall, ToolSpec
from .stub import ScriptedModel

__all__ = ["Message", "Model", "ModelError", "Reply", "ScriptedModel", "ToolCall", "ToolSpec"]
