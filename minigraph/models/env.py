"""The model this machine is set up for, and the stub where it is set up for none: a notebook names no model.

    model = model_from_env()                        # with ANTHROPIC_MODEL and ANTHROPIC_API_KEY set, that one
    model = model_from_env(ScriptedModel(["yes"]))  # with nothing set, this one

| set | the model |
|---|---|
| ANTHROPIC_MODEL, ANTHROPIC_API_KEY | Anthropic's |
| OPENAI_MODEL, OPENAI_API_KEY or OPENAI_BASE_URL | OpenAI's, or that of another server |
| neither | the stub |
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .base import Message, Model, ModelError, ToolSpec
from .stub import ScriptedModel

PROVIDERS = ("ANTHROPIC", "OPENAI")  # the first that is named answers


def model_from_env(stub: Model | None = None, **options: Any) -> Model:
    """The model that the environment names, now; without one `stub`, or else a stub that says what it is.

    options: for the maker of the model, as in timeout=20, stream=True; a stub takes none. ModelError if a key is set
    and no model is named: a run that looks live and is not would be worse.
    """
    for provider in PROVIDERS:
        if os.environ.get(f"{provider}_MODEL"):
            return _make(provider, options)
    for provider in PROVIDERS:
        if os.environ.get(f"{provider}_API_KEY"):
            raise ModelError("bad_request", f"{provider}_API_KEY is set, but no model is named: set {provider}_MODEL "
                                            "too, or unset the key, and the stub answers")
    return ScriptedModel(_stubbed, name="stub") if stub is None else stub


def _make(provider: str, options: dict[str, Any]) -> Model:
    if provider == "ANTHROPIC":
        from .anthropic import anthropic_model
        return anthropic_model(**options)
    from .openai import openai_model
    return openai_model(**options)


def _stubbed(messages: Sequence[Message], tools: Sequence[ToolSpec] | None) -> str:
    return f"This is the stub, which understands nothing. It was asked: {messages[-1].content}"
