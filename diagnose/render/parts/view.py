"""How much of an answer is shown, and how wide: what every renderer is asked with."""

from __future__ import annotations

from diagnose.record import record


@record
class View:
    """How much is shown and how wide. `top`: remedies shown in full; `budget`, `rules`: every term, every rule."""

    width: int = 80
    colour: bool = False
    top: int = 3
    verbose: bool = False
    budget: bool = False
    rules: bool = False


#: Eighty columns, no colour: a pipe.
PLAIN = View()
