"""A question of a web page, a chat or an agent, and its answer: plain values, so that they can travel to a worker process and back.

Everything is text with labels: nothing that a client names is opened or kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from diagnose.phrases import Lang
from diagnose.records import NamedTuple
from diagnose.render.parts.strings import one_line

#: Characters of a label that are kept.
MAX_LABEL = 128


@dataclass(slots=True)
class Question:
    """One job. Without `logs` its configs are checked before a run. A log of bytes is an uploaded file and may be compressed.

    `changes` are the knobs of a what-if. `form` selects the rendering: a name of RENDERERS, "body" for a web page, "change" for the
    what-if, "chat.PLATFORM" for a message.
    """

    logs: tuple[tuple[str, str | bytes], ...] = ()  # of one job, each with its label
    configs: tuple[tuple[str, str | bytes], ...] = ()
    lang: Lang = "en"
    model: str | None = None
    gpu: str | None = None
    gpus: int | None = None
    set: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, str] = field(default_factory=dict)
    redact: bool = True
    form: str = "json"

    def __post_init__(self) -> None:
        """Make every text one that UTF-8 can hold: chats and forms may bring halves of surrogate pairs."""
        self.logs = tuple((encodable(name), data if isinstance(data, bytes) else encodable(data)) for name, data in self.logs)
        self.configs = tuple((encodable(name), data if isinstance(data, bytes) else encodable(data)) for name, data in self.configs)
        self.model, self.gpu = self.model and encodable(self.model), self.gpu and encodable(self.gpu)
        self.set = {encodable(name): encodable(value) for name, value in self.set.items()}
        self.changes = {encodable(name): encodable(value) for name, value in self.changes.items()}


class Field(NamedTuple):
    """A question as a field of a form: `name` is what the form calls it; `words`: what it may be, where that is a fixed choice."""

    name: str
    text: str
    words: tuple[str, ...] = ()


@dataclass(slots=True)
class Answer:
    """The report as JSON (`data`) and, for people, `page` in the requested form; or `wrong`: the user's error as a sentence."""

    data: str = ""
    page: str = ""
    wrong: str = ""
    #: Of a web page: its title, the name of the file that it is kept as, the file itself, the same as a comment, the plan as a diff,
    #: fields for what is asked, and the job with the remedies (word and title) of which a reader can say what became of them.
    title: str = ""
    stem: str = ""
    file: str = ""
    comment: str = ""
    patch: str = ""
    asked: tuple[Field, ...] = ()
    job: str = ""
    tried: tuple[tuple[str, str], ...] = ()


def encodable(text: str) -> str:
    """The text with a question mark for each half of a surrogate pair."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def label(name: str, fallback: str) -> str:
    """The last part of a client's file name on one line of bounded length, or `fallback` if nothing is left of it."""
    base = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return one_line(base[: 4 * MAX_LABEL])[:MAX_LABEL].strip() or fallback


def setting_text(value: str | float | bool | None) -> str:
    """A JSON value in the notation of `--set`."""
    if value is None:
        return "unknown"
    return str(value).lower() if isinstance(value, bool) else str(value)
