"""How a section of the report is declared and turned into JSON, with the types that all sections share: sizes, places, values.

A part is a class whose annotated fields are the keys of a JSON object, in order. A field reads the attribute of the same name from the
described value, unless `at` names another source. Names that Python reserves end in an underscore (`from_`). Annotations are evaluated here
(no `from __future__ import annotations`), so that nothing has to compile them a second time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self, get_args

from diagnose import facts, units
from diagnose.catalogue import Model
from diagnose.diagnosis import Json
from diagnose.phrases import Lang, Text

if TYPE_CHECKING:
    from pydantic import BaseModel

    class Part(BaseModel):
        """What a type checker sees of a part: the model that `pydantic_report` makes of it."""

        @classmethod
        def of(cls, value: object, lang: Lang = "en") -> Self: ...

        def to_dict(self) -> dict[str, Json]: ...
else:

    class Part:
        """The base of every part. One may be made of its values by name; `pydantic_report` makes a pydantic model of its declaration."""

        def __init__(self, **values):
            vars(self).update(values)


#: The default of a key that is always there.
REQUIRED: Any = object()


@dataclass(eq=False)
class At:
    """What a field declares beside its name and type, see `at`."""

    source: str | Callable[[Any], Any]
    description: str | None
    default: Any
    limits: dict[str, Any]


def at(source: str | Callable[[Any], Any] = "", doc: str | None = None, *, default: Any = REQUIRED, **limits: int) -> Any:
    """Declare a field: the attribute (dotted for a nested one) or function that yields its value, its description in the schema, a
    default (the key is left out while the value is empty), and limits by pydantic's names (`ge`, `max_length`)."""
    return At(source, doc, default, limits)


@dataclass(eq=False)
class Key:
    """A key of a part. `field` is its name in Python; `part` is the class of its values if they are objects."""

    name: str
    field: str
    hint: Any
    read: Callable[[Any], Any]
    part: type[Part] | None
    at: At


@cache
def keys(part: type[Part]) -> tuple[Key, ...]:
    """The keys of a part, in order."""
    return tuple(_key(part, field, hint) for field, hint in part.__annotations__.items())


def _key(part: type[Part], field: str, hint: Any) -> Key:
    """The key of one annotated field."""
    declared, name = vars(part).get(field) or at(), field.removesuffix("_")
    reader: Any = attrgetter(declared.source or name) if isinstance(declared.source, str) else declared.source
    return Key(name, field, hint, reader, part if Self in get_args(hint) else _part(hint), declared)


def _part(hint: Any) -> type[Part] | None:
    """The part inside a type such as `list[Term]` or `Size | None`."""
    if isinstance(hint, type) and issubclass(hint, Part):
        return hint
    return next(filter(None, map(_part, get_args(hint))), None)


def mapping(value: object, part: type[Part], lang: Lang) -> dict[str, Json]:
    """The JSON object of a value, by its part."""
    values = ((key, key.read(value)) for key in keys(part))
    return {key.name: plain(content, key.part, lang) for key, content in values if content or key.at.default is REQUIRED}


def plain(value: Any, part: type[Part] | None, lang: Lang) -> Json:
    """A value as JSON: a text in the given language, a release or model by name, NaN and infinity as null."""
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Text):
        return value.to(lang)
    if isinstance(value, units.Version):
        return str(value)
    if isinstance(value, Model):
        return value.id
    if isinstance(value, dict):
        return {name: plain(item, part, lang) for name, item in value.items()}
    if type(value) in (tuple, list):
        return [plain(item, part, lang) for item in value]
    if isinstance(value, facts.Witness):
        return mapping(value, KeyWitness if value.key else LineWitness if value.line else WordWitness, lang)
    if part is None:
        raise TypeError(f"the report declares no part for {type(value).__name__}")
    return mapping(value, part, lang)


class With:
    """A value together with attributes that depend on its context."""

    def __init__(self, value: object, **attributes: object) -> None:
        self._value = value
        vars(self).update(attributes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._value, name)


def itself(value: Any) -> Any:
    """A source for fields that group keys in the report but not in the value."""
    return value


# -- what every section is made of

#: A witness shows at most this many characters of its line.
WITNESS_LIMIT = 500


def _cut(witness: facts.Witness) -> str:
    return witness.text[:WITNESS_LIMIT]


class Size(Part):
    """A byte count: `bytes` the nearest integer, low..high the range from rounding and unknowns, `text` as printed."""

    bytes: int
    low: int
    high: int
    text: str = at(default="")


class LineWitness(Part):
    """A line of an input, counted from 1."""

    source: str
    line: int = at(ge=1)
    column: int = at(lambda witness: witness.column or 1, ge=1)
    text: str = at(_cut, max_length=WITNESS_LIMIT)


class KeyWitness(Part):
    """A key of a config."""

    source: str
    line: int | None = at(lambda witness: witness.line or None)
    key: str


class WordWitness(Part):
    """A source that is neither a line nor a key: catalogue, default, given, derived."""

    source: str
    text: str = at(_cut)


Witness = LineWitness | KeyWitness | WordWitness

Value = Size | bool | int | float | str | None


class Frame(Part):
    """A line of a traceback."""

    file: str
    line: int
    function: str


class Since(Part):
    """The release of a program from which on it surely has a key; `before`: the name that older releases have for it; `after`: the last
    release that surely lacks it, where the one in use lies between both."""

    program: str
    release: str
    before: str = at(default="")
    after: str = at(default="")


class Edit(Part):
    """A change of one key as written in the file: `from` null if the key is absent, `to` null if it is removed."""

    target: str
    key: str
    from_: str | None = at("frm")
    to: str | None
    renamed: str = at(doc="The new key, where the edit renames it.", default="")
    since: Since | None = at(
        doc="What has the key, where a release without it may be in use; absent where all in question have it.", default=None
    )
