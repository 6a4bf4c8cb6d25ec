"""Request bodies of the JSON API as pydantic models. pydantic's own JSON parser is used because it limits the depth."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from diagnose.phrases import Lang
from diagnose.surfaces.server.json_text import without_lone_surrogates
from diagnose.surfaces.server.question import Question, setting_text
from diagnose.surfaces.server.serve_limits import RequestError

#: Number of configs and settings; characters of a short option.
MAX_CONFIGS, MAX_SETTINGS, MAX_WORD = 32, 200, 1000

Word = Annotated[str, Field(max_length=MAX_WORD)]


class RequestModel(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Config(RequestModel):
    """A config or launch script. The name is a label: nothing is opened."""

    name: str = Field(default="", max_length=4096, description="A label; its last part is shown.")
    text: str


class Options(RequestModel):
    """Those of the command line that make sense here."""

    lang: Literal["en", "zh"] | None = Field(default=None, description="Language of the answer; else Accept-Language decides.")
    gpu: Word | None = Field(default=None, description="The card, such as A100-80GB.")
    gpus: int | None = Field(default=None, ge=1, le=10**6, description="Number of training processes.")
    model: Annotated[str, Field(max_length=1 << 20)] | None = Field(default=None, description="A catalogue id, or a config.json as text.")
    set: dict[Word, Word | int | float | bool | None] = Field(
        default_factory=dict, max_length=MAX_SETTINGS, description="Any knob or fact by name; answers a question of the report."
    )
    redact: bool | None = Field(default=None, description="Mask secrets and names; null: as the server was started.")


class ToCheck(RequestModel):
    """A job before its run."""

    configs: list[Config] = Field(min_length=1, max_length=MAX_CONFIGS)
    options: Options = Options()

    def question(self, lang: Lang, redact: bool, logs: tuple[tuple[str, str], ...] = ()) -> Question:
        """The question for a worker; `lang` and `redact` are defaults of the options."""
        options = self.options
        return Question(
            logs=logs,
            configs=tuple((config.name, config.text) for config in self.configs),
            lang=options.lang or lang,
            model=options.model or None,
            gpu=options.gpu or None,
            gpus=options.gpus,
            set={name: setting_text(value) for name, value in options.set.items()},
            redact=redact if options.redact is None else options.redact,
        )


class ToExplain(ToCheck):
    """A failed job."""

    text: str = Field(description="The log, or as much of it as there is.")
    configs: list[Config] = Field(default_factory=list, max_length=MAX_CONFIGS)

    def question(self, lang: Lang, redact: bool, logs: tuple[tuple[str, str], ...] = ()) -> Question:
        return super().question(lang, redact, logs or (("", self.text),))


Model = TypeVar("Model", bound=RequestModel)


def parse_request(shape: type[Model], body: bytes) -> Model:
    """Parse a body. Raises RequestError with the first errors, without repeating the input."""
    try:
        return shape.model_validate_json(without_lone_surrogates(body))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        raise RequestError(422, "not_understood", why="; ".join(map(_error_text, faults[:5]))) from error


def _error_text(fault: Any) -> str:
    where = ".".join(str(part)[:60] for part in fault["loc"])
    return f"{where}: {fault['msg'][:200]}" if where else str(fault["msg"][:200])
