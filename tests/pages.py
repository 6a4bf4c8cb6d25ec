"""Pages made of the cases of the corpus: a heading, prose, the configs and the log in one of the forms in which people paste them."""

from __future__ import annotations

import html
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cases

from diagnose.adapters import config_reader
from diagnose.facts import FactBook
from diagnose.inputs.caller_arguments import as_config
from diagnose.parse.model.event import Event
from diagnose.pipeline import read
from diagnose.scan.source import Source

LANGUAGES = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".sh": "bash", ".py": "python", ".toml": "toml", ".log": "text"}


def _indented(text: str) -> str:
    return "".join(f"    {line}".rstrip() + "\n" for line in text.splitlines())


def _copied(text: str, language: str) -> str:
    """As the source of a web page has it: every line a span, signs as entities."""
    lines = "\n".join(f'<span class="line">{html.escape(line, quote=False)}</span>' for line in text.splitlines())
    return f'<div class="highlight highlight-source-{language}"><pre class="notranslate"><code>{lines}\n</code></pre></div>\n'


#: How a text is set apart, by what it and its language are made to.
FORMS: dict[str, Callable[[str, str], str]] = {
    "fence": lambda text, language: f"```\n{text}```\n",
    "fence with a language": lambda text, language: f"```{language}\n{text}```\n",
    "tildes": lambda text, language: f"~~~ {language}\n{text}~~~\n",
    "indented": lambda text, language: f"\n{_indented(text)}",
    "fold": lambda text, language: f"<details><summary>{language}</summary>\n\n```\n{text}```\n\n</details>\n",
    "fold of pre": lambda text, language: f"<details>\n<summary>{language}</summary>\n<pre>\n{text}</pre>\n</details>\n",
    "quoted": lambda text, language: "".join(f"> {line}".rstrip() + "\n" for line in f"```{language}\n{text}```".splitlines()),
    "copied": _copied,
    "in a list": lambda text, language: f"- as follows:\n\n{_indented(f'```{language}{chr(10)}{text}```')}\n",
    "of a board": lambda text, language: f"[code]\n{text}[/code]\n",
    "of Jira": lambda text, language: f"{{code:{language}}}\n{text}{{code}}\n",
    "never closed": lambda text, language: f"```{language}\n{text}",
    "none": lambda text, language: f"\n{text}\n",
}
#: Heading, what stands before configs, before the log, and behind it; {name}: the config's file.
PROSE = {
    "a template": (
        "### Reminder\n\n- [x] I have read the rules.\n\n### Describe the bug\n\nThe run of {model} on {gpus} x {gpu} stops as below.\n\n",
        "### {name}\n\n",
        "### Reproduction\n\n",
        "\n### Expected behavior\n\n_No response_\n\n### Others\n\n* Is there a recommended setting?\n* Thanks in advance!\n",
    ),
    "a few sentences": (
        "# Training stops after a while\n\nHi, I train {model} with {gpus} {gpu} and I cannot make it work.\n\n",
        "Here is my `{name}`:\n\n",
        "And the output:\n\n",
        "\nDoes anybody have an idea? Thanks!\n",
    ),
    "a title that quotes a message": (
        "# [Bug]: RuntimeError: CUDA out of memory with {model} on {gpus}x {gpu}\n\nI tried a smaller batch, same error.\n\n",
        "`{name}`:\n\n",
        "#### Log\n\n",
        "\n**Environment**\n\nIt is always the same OOM, and nothing helps.\n",
    ),
    "一个模板": (
        "### 提问前检查\n\n- [x] 我已搜索过已有问题。\n\n### 问题描述\n\n请教大佬，用 {gpus} 张 {gpu} 训练 {model}，跑一会儿就停了。\n\n",
        "**{name}**：\n\n",
        "**报错日志**：\n\n",
        "\n### 其他\n\n请问应该怎么调？谢谢！\n",
    ),
    "几句话": (
        "训练总是中断，求助\n\n用 {gpus} 张 {gpu} 跑 {model}。\n\n",
        "配置 {name} 如下：\n\n",
        "报错如下：\n\n",
        "\n谢谢大家。\n",
    ),
}


@dataclass(slots=True)
class Answer:
    """What a test compares: the failure as printed, without its place, and the values of knobs that configs set, by name."""

    event: dict[str, object] | None
    knobs: dict[str, set[str]]


@dataclass(slots=True)
class Made:
    """A page, its log alone as far as the page holds it, and the configs that it holds whole."""

    text: str
    log: str
    configs: list[Path]


def is_no_page(name: str) -> bool:
    """Whether a case's log is one: what is a page already is not pasted into another."""
    log = cases.settings(name)["logs"]
    return log.name != "page.md" and "```" not in log.read_text(encoding="utf-8", errors="replace")


@cache
def _failure_end(name: str) -> int:
    """The last line of a case's log that its failure is read from."""
    event = _root(name)
    return 0 if event is None else max((witness.line or 0 for witness in event.evidence), default=0)


@cache
def _root(name: str) -> Event | None:
    reading, _, _ = read([cases.settings(name)["logs"]])
    return None if reading.root is None else reading.events[reading.root]


@cache
def _said(name: str) -> dict[str, str]:
    """What a person would say of a case: the model, cards and how many."""
    facts = {fact.name: fact.value for fact in reversed(cases.diagnosed(name).facts)}
    return {
        "model": str(facts.get("model.id") or "a model"),
        "gpu": str(facts.get("hardware.gpu") or "GPU"),
        "gpus": str(facts.get("parallel.world") or 1),
    }


def page(name: str, form: str, prose: str, seed: int, cut: bool = False) -> Made:
    """A case as a page. With `cut` the page ends at some line after the failing message."""
    draw = random.Random(f"{name} {form} {prose} {seed}")
    settings = cases.settings(name)
    before, above_config, above_log, behind = PROSE[prose]
    text = before.format(**_said(name))
    configs = settings["configs"]
    for config in configs:
        text += above_config.format(name=config.name)
        text += FORMS[form](_closed(config.read_text(encoding="utf-8")), LANGUAGES.get(config.suffix, "")) + "\n"
    log = _closed(settings["logs"].read_text(encoding="utf-8"))
    lines = [f"{line}\n" for line in log.removesuffix("\n").split("\n")]
    if cut:
        lines = lines[: draw.randint(_failure_end(name) or len(lines), len(lines))]
        log = "".join(lines)
        made = FORMS[form](log, "text").rstrip("\n").removesuffix("</details>").rstrip("\n")
        for end in ("```", "~~~", "> ```", "</code></pre></div>", "</pre>", "[/code]", "{code}", "    ```"):
            made = made.removesuffix(end)
        return Made(text + above_log + made.rstrip("\n") + "\n", log, configs)
    return Made(text + above_log + FORMS[form](log, "text") + behind, log, configs)


def _closed(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


def answer(log: str | Path, configs: list[Path]) -> Answer:
    """What is read from a log or page and configs."""
    reading, sources, _ = read([Source.text(log, "page.md") if isinstance(log, str) else log], configs)
    event = None if reading.root is None else reading.events[reading.root]
    settings = config_reader.read([as_config(source) for source in sources], reading, FactBook(reading.facts))
    knobs: dict[str, set[str]] = {}
    for fact in settings.facts:
        if fact.origin == "config" and not fact.name.startswith("code."):  # a place in a script; of a page it is one in the log
            knobs.setdefault(fact.name, set()).add(repr(fact.value))
    return Answer(None if event is None else _of(event), knobs)


#: Where a failure stands, and what stands round it, differ between a page and a log.
_PLACES = ("evidence", "members", "count", "consequence_of", "frames", "attempt", "lines")


def _of(event: Event) -> dict[str, object]:
    values = {field: getattr(event, field) for field in event.__dataclass_fields__ if field not in _PLACES}
    values["frames"] = tuple((frame.file, frame.line, frame.function) for frame in event.frames)
    return {field: repr(value) for field, value in values.items()}
