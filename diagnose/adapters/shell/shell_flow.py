"""What variables hold after a branch of a script: what all arms agree on, else unknown."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

from diagnose.adapters.shell.shell_names import Held
from diagnose.adapters.shell.shell_text import Chars, Word
from diagnose.record import replace

_ARGUMENT = re.compile(r"\$\{?[1-9@*]")

State = dict[str, Held]


def merged(states: Sequence[State], tested: Container[str] = ()) -> State:
    """The state after one of several that may have come about. `tested` are variables that a test asks whether they are set: what an
    arm gives them is their default."""
    first = states[0]
    after: State = {}
    for name in dict.fromkeys(name for state in states for name in state):
        held = [state.get(name) for state in states]
        after[name] = first[name] if name in first and all(value is first[name] for value in held) else _one_of(name, held, name in tested)
    return after


def _one_of(name: str, held: Sequence[Held | None], is_tested: bool) -> Held:
    there = [value for value in held if value is not None]
    lists = [value for value in there if isinstance(value, list)]
    if len(lists) == len(there):
        return _items(lists, len(lists) < len(held))
    texts = [value for value in there if isinstance(value, Chars)]
    if len(texts) < len(there):
        return Chars.unknown(name)
    own = [value for value in texts if not _ARGUMENT.match(value.text) or value.sure]  # what the caller may say instead is not known
    everywhere = len(there) == len(held) or is_tested
    if own and everywhere and all(value.sure and value.text == own[0].text for value in own):
        same = all(value is own[0] for value in own)
        return own[0] if same else Chars(own[0].text, own[0].at, own[0].to)
    return Chars.unknown(name)


def _items(lists: Sequence[list[Word]], some_lack_it: bool) -> list[Word]:
    """An array: what stands in all of them is certain."""
    found: dict[int, Word] = {id(word): word for items in lists for word in items}
    sure = {key for key in found if not some_lack_it and all(any(id(word) == key for word in items) for items in lists)}
    return [word if key in sure else replace(word, sure=False) for key, word in found.items()]
