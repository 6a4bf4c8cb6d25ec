"""`NamedTuple`, as `typing` has it but for one thing: it leaves annotations the texts that they are. That of `typing` compiles each of them
where a class is defined, and a start, which defines a hundred classes, would take 3 % longer."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NamedTuple
else:

    class _Definition(type):
        """Makes of a class body with annotated fields a class that `collections.namedtuple` makes, with what else the body defines."""

        def __new__(cls, name: str, _bases: tuple[type, ...], body: dict[str, Any]) -> type:
            fields = body.get("__annotations__", {})
            made = namedtuple(name, fields, defaults=[body[field] for field in fields if field in body])  # noqa: PYI024 - what it makes
            for key, value in body.items():
                if key not in fields:
                    setattr(made, key, value)
            return made

    NamedTuple = type.__new__(_Definition, "NamedTuple", (), {})

__all__ = ["NamedTuple"]
