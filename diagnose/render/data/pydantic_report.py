"""The report as pydantic models, generated from its declaration for schemas and servers; imported on demand because of pydantic."""

from __future__ import annotations

import json
from functools import cache, reduce
from operator import or_
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, create_model

from diagnose.diagnosis import Json
from diagnose.phrases import Lang
from diagnose.render.data import part, report_schema


class TypedPart(BaseModel):
    """Base class of the models; adds no fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, alias_generator=lambda name: name.removesuffix("_"))
    declaration: ClassVar[Any]

    @classmethod
    def of(cls, value: object, lang: Lang = "en") -> Self:
        """The model of a diagnosis, or of the value that this part describes."""
        return cls.model_validate(part.mapping(value, cls.declaration, lang))

    def to_dict(self) -> dict[str, Json]:
        """The same data as in `Diagnosis.to_dict`."""
        report: dict[str, Json] = self.model_dump(by_alias=True, exclude_unset=True)
        return report


P = TypeVar("P", bound=part.Part)


def model(declaration: type[P]) -> type[P]:
    """The pydantic model of a part, cached."""
    typed: type[P] = _model(declaration)
    return typed


@cache
def _model(declaration: Any) -> Any:
    fields: dict[str, Any] = {}
    for key in part.keys(declaration):
        default: Any = ... if key.at.default is part.REQUIRED else key.at.default
        fields[key.field] = (_typed(key.hint), Field(default, description=key.at.description, **key.at.limits))
    typed = create_model(declaration.__name__, __base__=TypedPart, __doc__=declaration.__doc__, __module__=__name__, **fields)
    typed.declaration = declaration
    globals()[typed.__name__] = typed  # where pickle looks for it
    return typed


def _typed(hint: Any) -> Any:
    """A type with every part in it replaced by its model."""
    if isinstance(hint, type) and issubclass(hint, part.Part):
        return _model(hint)
    arguments, origin = get_args(hint), get_origin(hint)
    if not arguments or origin is Literal:
        return hint
    types = tuple(map(_typed, arguments))
    return reduce(or_, types) if origin in (Union, UnionType) else origin[types]


if TYPE_CHECKING:
    from diagnose.render.data.report_schema import Report as Report
else:
    Report = model(report_schema.Report)


def schema() -> str:
    """The JSON Schema of the report."""
    return json.dumps(Report.model_json_schema(by_alias=True), indent=2)
