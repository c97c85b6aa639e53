"""Models behind one seam: whoever answers, a node or a loop asks in the same words.

    from minigraph.models import Reply, ScriptedModel
    from minigraph.models.env import model_from_env

| module | the model |
|---|---|
| base | what is said: Message, ToolCall, Reply, ToolSpec, ModelError |
| stub | ScriptedModel, which answers from a script, with declared latencies |
| replay | recorded(model, path), which answers what was asked before as it was answered then |
| anthropic, openai | anthropic_model and openai_model, through the SDKs of these names |
| service, border | what these two share: deadline and retries; foreign exceptions into one sentence |
| env | model_from_env(), the one this machine is set up for, else a stub |
"""

from .base import Message, Model, ModelError, Reply, ToolCall, ToolSpec
from .stub import ScriptedModel

__all__ = ["Message", "Model", "ModelError", "Reply", "ScriptedModel", "ToolCall", "ToolSpec"]
