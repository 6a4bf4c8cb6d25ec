"""Value classes: dataclasses with slots that cost a tenth to define. There are a hundred, and every start defines them all.

`field`, `fields`, `replace` and `is_record` are those of dataclasses, and the type checker takes them for these. The module of that
name is not imported: with what it brings along (inspect, ast, tokenize) it costs as much as all records together. `NamedTuple` is that
of typing, which compiles every annotation that is a text.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")

#: What a field without a default has for one.
_ABSENT: Any = object()


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _Named(type):
        """Makes the tuple that a class with annotations describes."""

        def __new__(cls, name, bases, body):
            if not bases:
                return super().__new__(cls, name, bases, body)
            names = body.get("__annotations__", {})
            made = namedtuple(name, names, defaults=[body[each] for each in names if each in body], module=body["__module__"])  # noqa: PYI024
            for key, value in body.items():
                if key not in names and key != "__module__":
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Named):
        """The base of a tuple whose parts have names."""


class Field(NamedTuple):
    """A field as it was declared."""

    name: str
    default: Any = _ABSENT
    default_factory: Any = _ABSENT


if TYPE_CHECKING:
    from dataclasses import field as field
    from dataclasses import fields as fields
    from dataclasses import is_dataclass
    from dataclasses import replace as replace

    is_record = is_dataclass
else:

    def field(*, default=_ABSENT, default_factory=_ABSENT):
        """A default, or what makes one for each value."""
        return Field("", default, default_factory)

    def fields(of):
        """The fields of a record or its class, in order."""
        return tuple(of.__record__.values())

    def replace(value, /, **changes):
        """The same record with other values in some fields. Raises TypeError for a field that it has not."""
        held = dict(zip(value.__record__, value._values(value), strict=True))  # noqa: SLF001 - a record is of this module
        held.update(changes)
        return value.__class__(**held)

    def is_record(value):
        """Whether this is a value of a record (or such a class)."""
        return hasattr(value, "__record__")


@overload
def record(cls: type[T], /) -> type[T]: ...
@overload
def record(*, kw_only: bool = False, frozen: bool = True, eq: bool = True, slots: bool = True) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(
    cls: type[T] | None = None, /, *, kw_only: bool = False, frozen: bool = True, eq: bool = True, slots: bool = True
) -> type[T] | Callable[[type[T]], type[T]]:
    """A class with slots whose values are compared, hashed and shown by their fields; with `eq` false each is only itself,
    with `slots` false it can remember more (cached_property).

    `frozen` is for the type checker only. A frozen dataclass compiles six methods for each class (0.4 ms), which for a hundred
    classes is more than a third of the time that a diagnosis has. Here equality, hash and repr are shared, and `__init__` is
    compiled when the first value is made. A record has no parents of its own kind.
    """
    del frozen

    def make(plain: Any) -> Any:
        body = {name: value for name, value in plain.__dict__.items() if name not in ("__dict__", "__weakref__")}
        declared = {name: _declared(name, body.pop(name, _ABSENT)) for name in plain.__annotations__}
        shared = {"__init__": _first_init, "__repr__": _show, **({"__eq__": _equal, "__hash__": _hash} if eq else {})}
        for name, method in shared.items():
            if body.get(name) is None:
                body[name] = method
        body["__doc__"] = plain.__doc__ or plain.__name__
        if slots:
            body["__slots__"] = tuple(declared)
        body["__qualname__"] = plain.__qualname__
        body["__record__"] = declared
        body["__dataclass_fields__"] = _AS_DATACLASS
        body["_keywords"] = kw_only
        body["_values"] = _getter(tuple(declared))
        return type(plain)(plain.__name__, plain.__bases__, body)

    return make if cls is None else make(cls)


def _declared(name: str, default: Any) -> Field:
    if isinstance(default, Field):
        return default._replace(name=name)
    if default.__class__.__module__ == "dataclasses":  # whoever wrote that has imported it
        from dataclasses import MISSING

        return Field(name, *(_ABSENT if each is MISSING else each for each in (default.default, default.default_factory)))
    if default is not _ABSENT and default.__class__.__hash__ is None:
        raise ValueError(f"all values would share the default of {name}: use field(default_factory=...)")
    return Field(name, default)


class _AsDataclass:
    """What the functions of dataclasses look for, made when they do: a record is one to them."""

    def __get__(self, value: object, cls: Any) -> Any:
        import dataclasses

        def described(one: Field) -> Any:
            told = {"default": one.default, "default_factory": one.default_factory, "kw_only": cls._keywords}
            of: Any = dataclasses.field
            return of(**{key: said for key, said in told.items() if said is not _ABSENT})

        made: Any = dataclasses.make_dataclass(
            cls.__name__, [(one.name, cls.__annotations__[one.name], described(one)) for one in cls.__record__.values()]
        )
        cls.__dataclass_fields__ = made.__dataclass_fields__
        return cls.__dataclass_fields__


_AS_DATACLASS = _AsDataclass()


def _first_init(self: Any, *args: Any, **named: Any) -> None:
    """Stands in for `__init__` until there is a value to make."""
    cls = type(self)
    cls.__init__ = _init(cls)
    cls.__init__(self, *args, **named)


def _init(cls: Any) -> Any:
    """The `__init__` that a dataclass would have."""
    scope: dict[str, Any] = {"_absent_": _ABSENT}
    parameters = ["self", "*"] if cls._keywords and cls.__record__ else ["self"]
    lines = ["pass"]
    for name, default, factory in cls.__record__.values():
        value = name
        if factory is not _ABSENT:
            scope[f"_of_{name}"] = factory
            value = f"_of_{name}() if {name} is _absent_ else {name}"
            parameters.append(f"{name}=_absent_")
        elif default is not _ABSENT:
            scope[f"_of_{name}"] = default
            parameters.append(f"{name}=_of_{name}")
        else:
            parameters.append(name)
        lines.append(f"self.{name} = {value}")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines), scope)  # noqa: S102 - field names are ours
    return scope["__init__"]


def _getter(names: tuple[str, ...]) -> Any:
    """What gives the values of a record, in order."""
    return attrgetter(*names) if len(names) > 1 else staticmethod(lambda value: tuple(getattr(value, name) for name in names))


def _equal(self: Any, other: Any) -> bool:
    return bool(self._values(self) == self._values(other)) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(self._values(self))


def _show(self: Any) -> str:
    cls = self.__class__
    return f"{cls.__qualname__}({', '.join(map(_pair, cls.__record__, self._values(self)))})"


def _pair(name: str, value: Any) -> str:
    return f"{name}={value!r}"
