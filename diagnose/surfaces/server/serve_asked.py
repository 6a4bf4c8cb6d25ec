"""What the JSON API takes, as pydantic models: read by pydantic's own reader of JSON, which knows no depth without end."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from diagnose.phrases import Lang
from diagnose.surfaces.server.question import Question, text_of
from diagnose.surfaces.server.serve_limits import Refused

#: More configs than any job has, and a limit to what is said of each.
CONFIGS, SETTINGS, WORD = 32, 200, 1000

Word = Annotated[str, Field(max_length=WORD)]


class Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Config(Asked):
    """A config or launch script. The name is a label: nothing is opened."""

    name: str = Field(default="", max_length=4096, description="A label; its last part is shown.")
    text: str


class Options(Asked):
    """Those of the command line that make sense here."""

    lang: Literal["en", "zh"] | None = Field(default=None, description="Language of the answer; else Accept-Language decides.")
    gpu: Word | None = Field(default=None, description="The card, such as A100-80GB.")
    gpus: int | None = Field(default=None, ge=1, le=10**6, description="Number of training processes.")
    model: Annotated[str, Field(max_length=1 << 20)] | None = Field(default=None, description="A catalogue id, or a config.json as text.")
    set: dict[Word, Word | int | float | bool | None] = Field(
        default_factory=dict, max_length=SETTINGS, description="Any knob or fact by name; answers a question of the report."
    )
    redact: bool | None = Field(default=None, description="Mask secrets and names; null: as the server was started.")


class ToCheck(Asked):
    """A job before its run."""

    configs: list[Config] = Field(min_length=1, max_length=CONFIGS)
    options: Options = Options()

    def question(self, lang: Lang, redact: bool, logs: tuple[tuple[str, str], ...] = ()) -> Question:
        """What a worker is asked; `lang` and `redact` where the options do not say."""
        told = self.options
        return Question(
            logs=logs,
            configs=tuple((config.name, config.text) for config in self.configs),
            lang=told.lang or lang,
            model=told.model or None,
            gpu=told.gpu or None,
            gpus=told.gpus,
            set={name: text_of(value) for name, value in told.set.items()},
            redact=redact if told.redact is None else told.redact,
        )


class ToExplain(ToCheck):
    """A failed job."""

    text: str = Field(description="The log, or as much of it as there is.")
    configs: list[Config] = Field(default_factory=list, max_length=CONFIGS)

    def question(self, lang: Lang, redact: bool, logs: tuple[tuple[str, str], ...] = ()) -> Question:
        return super().question(lang, redact, logs or (("", self.text),))


Shape = TypeVar("Shape", bound=Asked)


def understood(shape: type[Shape], body: bytes) -> Shape:
    """The request that JSON text makes. Raises Refused with the first things that are wrong; what was sent is not repeated."""
    try:
        return shape.model_validate_json(body)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        raise Refused(422, "not_understood", why="; ".join(map(_said, faults[:5]))) from error


def _said(fault: Any) -> str:
    where = ".".join(str(part)[:60] for part in fault["loc"])
    return f"{where}: {fault['msg'][:200]}" if where else str(fault["msg"][:200])
