"""One palette for every picture: a colour stands for a meaning, and a shape, a hatch or a word always says it, too.

    contrast(INK, KINDS["llm"])          # 14.3: what is written must reach READABLE
    tint(BLUE)                           # "#BFDCEC", light enough for ink

The seven colours are those of Okabe and Ito, told apart by every kind of colour vision: M. Okabe and K. Ito, "Color
Universal Design", 2008, https://jfly.uni-koeln.de/color/. Ink, greys and paper are our own. A picture brings its own
paper along, so that it looks the same in a light notebook and in a dark one.
"""

from __future__ import annotations

ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
INK, FAINT, BAND, PAPER = "#1A1A1A", "#595959", "#F0F0F0", "#FFFFFF"
RULE = "#C8C8C8"  # lines of a grid, edges of a band: they may be missed


def tint(colour: str, paper: float = 0.75) -> str:
    """The colour mixed with that much white, light enough for ink on it: tint("#0072B2") -> "#BFDCEC"."""
    parts = (int(colour[i:i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * paper):02X}" for part in parts)


# What took time, and what became of it: bars, lines, borders. Letters are INK, or FAINT for what did not happen.
WORK = SKY  # a function or a tool ran
MODEL = ORANGE  # a model was asked
DONE = GREEN
RUNNING = BLUE
WAITING = PURPLE  # for a person's answer
FAILED = VERMILION  # failed, refused; and what goes to a handler
ABSENT = FAINT  # skipped, blocked, not run; not taken
MARK = BLUE  # a moment or a key that is pointed out; may be written in

# node's kind -> what its shape is filled with
KINDS = {"fn": PAPER, "tool": tint(SKY), "llm": tint(ORANGE), "agent": tint(PURPLE), "human": tint(YELLOW),
         "graph": tint(GREEN), "map": tint(BLUE)}

# kind of a node that is drawn open -> what the box around its graph is filled with
INSIDE = {"graph": tint(GREEN, 0.92), "map": tint(BLUE, 0.92)}

READABLE = 4.5  # the least contrast of letters: WCAG 2.2, success criterion 1.4.3, level AA
VISIBLE = 3.0  # of lines and borders that mean something: 1.4.11

# letters' colour -> what it may be written on
LETTERS = {
    INK: (PAPER, BAND, WORK, MODEL, *KINDS.values(), *INSIDE.values()),
    FAINT: (PAPER, BAND, *KINDS.values(), *INSIDE.values()),
    MARK: (PAPER,),
    PAPER: (INK, MARK),
}


def contrast(one: str, other: str) -> float:
    """How well two colours are told apart, from 1 to 21, as WCAG 2.2 defines it ("contrast ratio")."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    """How bright a colour is, from 0 to 1, as WCAG 2.2 defines it ("relative luminance")."""
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
