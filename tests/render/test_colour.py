"""Colour is legible whatever the terminal: letters have its own colour, or ours on a colour of ours, in the palettes people have."""

from __future__ import annotations

from collected import for_each

from diagnose.render.parts.wrapping import STYLES
from diagnose.render.text.character_bar import PAINT

#: The sixteen colours of xterm and of the Windows terminal (Campbell), and the backgrounds that both are used on.
PALETTES = {
    "xterm": "000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5 7f7f7f ff0000 00ff00 ffff00 5c5cff ff00ff 00ffff ffffff",
    "Windows": "0c0c0c c50f1f 13a10e c19c00 0037da 881798 3a96dd cccccc 767676 e74856 16c60c f9f1a5 3b78ff b4009e 61d6d6 f2f2f2",
}
LEGIBLE = 3.0  # what WCAG asks of large or bold letters and of graphics


def light(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def colours(code: str, palette: list[str]) -> tuple[str | None, str | None]:
    """The letters' and the background's colour of a style; None: the terminal's own."""
    front = back = None
    for number in map(int, code.split(";") if code else ()):
        front = palette[number % 10 + 8 * (number >= 90)] if 30 <= number < 38 or 90 <= number < 98 else front
        back = palette[number % 10 + 8 * (number >= 100)] if 40 <= number < 48 or 100 <= number < 108 else back
    return front, back


@for_each("terminal", PALETTES)
@for_each("name", [*STYLES, *PAINT])
def test_letters_can_be_read(name: str, terminal: str) -> None:
    palette = PALETTES[terminal].split()
    front, back = colours({**STYLES, **PAINT}[name], palette)
    if front is not None and name != "block":  # which is no letter, and stands beside its figure
        for ground in [back] if back else [palette[0], "ffffff"]:
            assert contrast(front, ground) >= LEGIBLE, (name, front, ground)
    assert front is not None or back is None, "a background of ours needs letters of ours"
