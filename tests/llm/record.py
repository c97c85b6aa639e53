"""Asks the small model once and writes down what it says: python tests/llm/record.py makes data/replies/smollm2.jsonl.

What a notebook replays is what a real model said, errors included; so the file is made anew, never mended.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from small_model import KEY, NAME, serving

from minigraph.models import Message
from minigraph.models.openai import openai_model
from minigraph.models.replay import recorded
from minigraph.workflows import gather

FILE = Path(__file__).resolve().parents[2] / "data" / "replies" / "smollm2.jsonl"

QUESTIONS = [
    ("", "What is the capital of France?"),
    ("You are brief.", "Name three colours."),
    ("", "From 0 to 1, how urgent is this? Reply with the number alone. The printer is on fire."),
    ("", "From 0 to 1, how urgent is this? Reply with the number alone. The printer is out of paper."),
    ("", "Is this mail urgent? Reply with one word, yes or no. The printer is on fire."),
    ("", "Is this mail urgent? Reply with one word, yes or no. The canteen has soup today."),
    ("", 'Reply with JSON alone, as in {"colour": "red"}. What is the colour of the sky?'),
    ("", "Write one sentence about rain."),
]


def main() -> None:
    """Asks everything, and says how much there is now."""
    FILE.unlink(missing_ok=True)
    with serving() as url, tempfile.TemporaryDirectory() as outbox:
        model = openai_model(NAME, api_key=KEY, base_url=f"{url}/v1", timeout=600, retries=0, max_tokens=60)
        recording = recorded(model, FILE)
        for system, text in QUESTIONS:
            reply = recording([*[Message("system", system)][:bool(system)], Message("user", text)])
            print(f"{text}\n  -> {reply.text!r} ({reply.stop_reason})")
        state, _ = gather.run(model=recording, outbox=outbox, measured=False)
        print(f"gather\n  -> {state['synthesis']!r}")
    print(recorded(None, FILE))


if __name__ == "__main__":
    main()
