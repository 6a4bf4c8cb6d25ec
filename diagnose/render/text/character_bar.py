"""The card as a bar of characters with a legend; readable without colour, on light and dark terminals and in pipes."""

from __future__ import annotations

from diagnose.diagnosis import Diagnosis
from diagnose.phrases import Lang
from diagnose.render.parts import card_bar
from diagnose.render.parts.wrapping import Page, cells, wrap

#: Black or white on a colour of its own: legible whatever the terminal's background.
PAINT = {
    "weights": "97;44",
    "gradients": "30;46",
    "optimizer": "97;45",
    "activations": "30;42",
    "logits": "30;43",
    "other": "30;47",
    "allocated": "97;44",
    "unexplained": "30;47",
    "unused": "30;100",
    "outside": "30;100",
    "cache": "30;105",
    "engine": "30;105",
    "foreign": "30;105",
    "free": "",
    "request": "1;97;41",
}


def append(page: Page, diagnosis: Diagnosis, lang: Lang) -> None:
    """Heading, bar and legend; nothing if no card is known."""
    memory = card_bar.build_card(diagnosis, lang)
    if memory is None:
        return
    page.heading(memory.title)
    page.row("  " + line(memory, page.width - 4, page.colour))
    for row in legend(memory, page.width - 2, lang):
        page.row("  " + row)


def line(memory: card_bar.Card, width: int, colour: bool = False) -> str:
    """The bar between brackets, `width` columns in all; segments behind the closing bracket did not fit the card."""
    room = max(width - 2, 8)
    edge, at, out = memory.edge_cell(room), 0, "["
    for part, count in memory.cells(room):
        for piece in (count,) if edge is None or not at < edge < at + count else (edge - at, at + count - edge):
            if at == edge:
                out += "]"
            out += paint(card_bar.SIGNS[part.kind] * piece, PAINT[part.kind] if colour else "")
            at += piece
    return out + ("]" if edge is None or edge >= room else "")


def paint(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if style else text


def legend(memory: card_bar.Card, width: int, lang: Lang) -> list[str]:
    """The letters of the bar with name and GiB, filling the lines."""
    lines, used = [""], 0
    for part in memory.parts:
        text = f"{card_bar.SIGNS[part.kind]} {part.name(lang)} {card_bar.figure(part)}"
        if used and used + 2 + cells(text) > width:
            lines.append("")
            used = 0
        lines[-1] += f"  {text}" if used else text
        used += cells(text) + (2 if used else 0)
    return [row for each in lines for row in ([each] if cells(each) <= width else wrap(each, width, "", "  "))]  # one wide name
