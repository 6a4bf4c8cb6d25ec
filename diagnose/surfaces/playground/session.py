"""The job of the page that runs in a browser: opened from files, then turned. Requests and answers are JSON, for a worker's messages.

What a browser lacks (processes, sockets, a compiled YAML) is not imported here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from diagnose import notebook
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.diagnosis import Diagnosis
from diagnose.errors import UserError
from diagnose.facts import Value, declared
from diagnose.inputs.config_files import MAX_CONFIG_BYTES, is_config_file
from diagnose.inputs.split_paste import pasted_configs
from diagnose.phrases import Lang
from diagnose.pipeline import check, explain
from diagnose.plan.outlook.turned_knobs import Turned, Workbench
from diagnose.plan.patch import patching
from diagnose.plan.remedies.remedy import Question
from diagnose.render.formats import RENDERERS
from diagnose.render.markup import html, turned_page
from diagnose.render.parts import advice_text, failure_text, turned_view, words
from diagnose.render.parts.failure_text import file_stem
from diagnose.render.parts.view import View
from diagnose.scan.source import Source
from diagnose.surfaces.what_if import turned_roles, what_if_command

#: How what torch.cuda.memory._dump_snapshot writes begins, and no text.
PICKLE = b"\x80"

#: Columns of the answer as text.
WIDTH = 80


@dataclass
class Job:
    """What was opened, in one language at a time."""

    diagnosis: Diagnosis
    options: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def bench(self) -> Workbench:
        return turned_roles.bench(self.diagnosis)


class Session:
    """One page: the job that it shows. `ask` is all that a worker calls."""

    def __init__(self) -> None:
        self.job: Job | None = None
        self.answers: dict[str, Callable[[Mapping[str, Any], Lang], dict[str, Any]]] = {
            "open": self.open,
            "show": self.show,
            "turn": self.turn,
            "more": self.more,
            "save": self.save,
        }

    def ask(self, request: str) -> str:
        """The answer to one request; `wrong` is a mistake of the user's as a sentence."""
        asked = json.loads(request)
        lang: Lang = "zh" if asked.get("lang") == "zh" else "en"
        try:
            answer = self.answers[asked["ask"]](asked, lang)
        except UserError as error:
            answer = {"wrong": error.to(lang)}
        return json.dumps(answer, ensure_ascii=False)

    # -- the answer

    def open(self, asked: Mapping[str, Any], lang: Lang) -> dict[str, Any]:
        """Read the files (`log`, `config`, or `any`, which is sorted by what it is) below `folder` and answer."""
        os.chdir(asked["folder"])
        logs, configs, snapshot = sorted_files(asked["files"])
        options: dict[str, Any] = {name: asked.get(name) or None for name in ("model", "gpu", "gpus")} | {"set": asked.get("set") or {}}
        if not logs and not configs and snapshot is None:
            raise what_if_command.turned_error("no_page", "give_something")
        noted = [note for row in asked.get("notes") or [] for note in notebook.parsed(row)]
        options |= {"notes": noted}
        failed = logs or snapshot is not None
        diagnosis = explain(logs, configs=configs, **options, snapshot=snapshot) if failed else check(configs, **options)
        self.job = Job(diagnosis)
        return self.show(asked, lang)

    def show(self, _: Mapping[str, Any], lang: Lang) -> dict[str, Any]:
        """The answer in every form that the page shows."""
        diagnosis = self.opened.diagnosis
        remedies = [remedy for remedy in diagnosis.outcome.remedies if remedy.knobs]
        plan = diagnosis.outcome.plan
        return {
            "title": failure_text.banner(diagnosis, lang),
            "asked": diagnosis.asked,
            "status": diagnosis.verdict.status,
            "stem": file_stem(diagnosis),
            "body": html.body(diagnosis, lang, inside=True),
            "text": RENDERERS["text"](diagnosis, lang, View(width=WIDTH)),
            "json": RENDERERS["json"](diagnosis, lang, View()),
            "patch": advice_text.patch(diagnosis),
            "job": diagnosis.job,
            "tried": advice_text.worth_trying(diagnosis, lang),
            "questions": [self.question(of, lang) for of in diagnosis.outcome.questions],
            "counted": self.opened.bench.state({}).need is not None,
            "switches": turned_page.switches(remedies, plan.steps if plan else (), lang),
            "remedies": {remedy.id: {knob: as_typed(value) for knob, value in remedy.knobs} for remedy in remedies},
            "planned": [step for step in (plan.steps if plan else ()) if any(remedy.id == step for remedy in remedies)],
        }

    def save(self, asked: Mapping[str, Any], lang: Lang) -> dict[str, Any]:
        """The answer in a form that is made only when it is asked for: as a page of its own, or masked as Markdown."""
        diagnosis = self.opened.diagnosis
        return {"text": html.render(diagnosis, lang) if asked["form"] == "page" else diagnosis.to_markdown(lang)}

    @staticmethod
    def question(of: Question, lang: Lang) -> dict[str, object]:
        """A question as a field of a form. `option`: the option of its own that answers it, else `--set` does; `words`: what it may be."""
        option = of.set.split()[0].removeprefix("--") if of.set else ""
        entry = declared(of.fact)
        return {
            "fact": of.fact,
            "why": of.why.to(lang),
            "how": of.how.to(lang),
            "option": option if option in ("model", "gpu", "gpus") else "",
            "words": list(entry.words) if entry is not None else [],
        }

    @property
    def opened(self) -> Job:
        if self.job is None:
            raise what_if_command.turned_error("no_page", "give_something")
        return self.job

    # -- what if

    def turn(self, asked: Mapping[str, Any], lang: Lang) -> dict[str, Any]:
        """The bars, the step and whether it fits under `changes`."""
        turned = self.opened.bench.turn(self.changes(asked))
        return {"html": turned_page.turned(turned, lang), "data": what_if_command.as_data(turned, lang)}

    def more(self, asked: Mapping[str, Any], lang: Lang) -> dict[str, Any]:
        """What takes longer: the knobs that now make a difference, the map of what fits, the changes as a patch."""
        bench, changes = self.opened.bench, self.changes(asked)
        turned = bench.turn(changes)
        knobs = (bench.track.rows[0], bench.track.tokens)
        return {
            "controls": turned_page.controls(bench.controls(changes), changes, lang),
            "map": turned_page.fit_map(bench.frontier_map(changes), knobs, lang),
            "map_knobs": knobs,
            **self.patch(turned, lang),
        }

    def patch(self, turned: Turned, lang: Lang) -> dict[str, Any]:
        """The changes as a diff of the given files, and what has to be said of it."""
        documents = self.opened.diagnosis.documents
        if not turned.changes or not documents:
            return {"patch": "", "said": [], "edits": []}
        written = self.opened.bench.written(turned.changes)
        said = []
        if written.unwritable:
            names = words.comma(lang).join(words.meaning(name, lang) for name in written.unwritable)
            said.append(turned_view.say("unwritable", lang, names=names))
        if written.edits is None:
            return {"patch": "", "said": [*said, turned_view.say("unverified", lang)], "edits": []}
        diff = patching.diff(documents, written.edits)
        patched = {document.name for document in documents if document.form != "command"} if diff else set()
        diagnosis = self.opened.diagnosis
        lines = [advice_text.placed_edit(edit, diagnosis, lang) for edit in written.edits if edit.target not in patched]
        said += advice_text.release_notes([edit for edit in written.edits if edit.target in patched], lang)
        return {"patch": diff, "said": said, "edits": lines}

    @staticmethod
    def changes(asked: Mapping[str, Any]) -> dict[str, Value]:
        return turned_roles.values({name: as_typed(value) for name, value in (asked.get("changes") or {}).items()})


def sorted_files(files: list[dict[str, str]]) -> tuple[list[Path | Source], list[ConfigSource | Path], Path | None]:
    """Logs, configs and the memory snapshot: as they were given, else by name and content. A folder is read as a job's folder is; a paste
    may hold several configs."""
    logs: list[Path | Source] = []
    configs: list[ConfigSource | Path] = []
    snapshot = None
    for file in files:
        path = Path(file["name"])
        kind = kind_of(path) if file["kind"] == "any" else file["kind"]
        if kind == "snapshot":
            snapshot = path
        elif kind == "pasted":
            several = pasted_configs(path.read_text(encoding="utf-8", errors="replace"), path.name)
            configs += several if len(several) > 1 else [path]
        elif kind == "config":
            configs.append(path)
        else:
            logs.append(path)
    return logs, configs, snapshot


def kind_of(path: Path) -> str:
    """What a file that somebody dropped is."""
    if not path.is_file():
        return "log"
    with path.open("rb") as opened:
        if opened.read(1) == PICKLE:
            return "snapshot"
    is_small = path.stat().st_size <= MAX_CONFIG_BYTES
    return "config" if is_small and is_config_file(path.name, path.read_bytes()) else "log"


def as_typed(value: object) -> str:
    """A value in the notation of `--set`."""
    if value is None:
        return "unknown"
    return str(value).lower() if isinstance(value, bool) else str(value)
