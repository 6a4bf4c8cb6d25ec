"""What triage found, grouped by cause: as text, JSON or Markdown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from diagnose.phrases import Lang, phrase
from diagnose.record import record
from diagnose.render import View
from diagnose.render.layout import Page
from diagnose.render.markdown import code, escape
from diagnose.render.strings import escaped, one_line
from diagnose.render.words import bracketed, colon, comma

#: Jobs named per group.
NAMED = 3


@record
class Row:
    """What triage keeps of one job. `report` is its JSON line; `error` says why there is none."""

    job: str
    logs: tuple[str, ...]
    status: str = "unread"
    cause: str = ""
    title: str = ""
    headline: str = ""
    remedy: str = ""
    report: str = ""
    error: str = ""

    @property
    def failed(self) -> bool:
        """Whether memory failed, or probably did."""
        return self.status in ("oom", "suspected")


@record
class Group:
    """Jobs that failed of one cause; `example` is the first of them, `share` their part of all failures."""

    cause: str
    title: str
    rows: tuple[Row, ...]
    remedy: str
    share: float

    @property
    def example(self) -> Row:
        return self.rows[0]


def groups(rows: Sequence[Row]) -> list[Group]:
    """The failures by first cause, most frequent first."""
    causes: dict[str, list[Row]] = {}
    for row in sorted((row for row in rows if row.failed), key=lambda row: row.job):
        causes.setdefault(row.cause, []).append(row)
    failed = sum(map(len, causes.values()))
    found = [group(cause, rows, failed) for cause, rows in causes.items()]
    return sorted(found, key=lambda group: (-len(group.rows), group.cause))


def group(cause: str, rows: Sequence[Row], failed: int) -> Group:
    return Group(cause, most(row.title for row in rows), tuple(rows), most(row.remedy for row in rows), len(rows) / failed)


def most(texts: Iterable[str]) -> str:
    """The most frequent text that says something."""
    counted = Counter(filter(None, texts))
    return counted.most_common(1)[0][0] if counted else ""


def title(rows: Sequence[Row], lang: Lang) -> str:
    counts = Counter("failed" if row.failed else "unread" if row.status == "unread" else "others" for row in rows)
    return say("title", lang, jobs=len(rows), failed=counts["failed"], others=counts["others"], unread=counts["unread"])


def say(name: str, lang: Lang, /, **values: object) -> str:
    return phrase(f"cli.triage_{name}").fill(**values).to(lang)


def where(group: Group, lang: Lang) -> str:
    """The jobs of a group, the first of them by name."""
    named = comma(lang).join(one_line(row.job) for row in group.rows[:NAMED])
    more = say("more", lang, count=len(group.rows) - NAMED) if len(group.rows) > NAMED else ""
    return say("in", lang, jobs=named + more)


def as_text(rows: Sequence[Row], lang: Lang, view: View) -> str:
    """Groups with an example and the first remedy; then what could not be read."""
    page = Page(view.width, view.colour)
    page.say(title(rows, lang), style="bold")
    found = groups(rows)
    for group in found[: view.top]:
        note = f"{group.cause}{comma(lang)}{say('share', lang, share=f'{group.share:.0%}')}"
        page.heading(say("group", lang, count=len(group.rows), cause=one_line(group.title)) + bracketed(note, lang))
        page.say(f"{say('example', lang)}{colon(lang)}{one_line(group.example.headline)}", "  ", "    ")
        if group.remedy:
            page.say(f"{say('first', lang)}{colon(lang)}{one_line(group.remedy)}", "  ", "    ", "good")
        page.say(where(group, lang), "  ", "    ", "dim")
    if len(found) > view.top:
        page.gap()
        page.say(say("more_causes", lang, count=len(found) - view.top, total=len(found)), style="dim")
    unread = [row for row in rows if row.status == "unread"]
    if unread:
        page.heading(say("unread", lang))
    for row in unread:
        page.say(f"- {one_line(row.job)}{colon(lang)}{one_line(row.error)}", "  ", "    ", "note")
    return page.text()


def as_markdown(rows: Sequence[Row], lang: Lang, view: View) -> str:
    """One table of causes; then what could not be read."""
    header = [phrase("cli.count").to(lang), phrase("cli.cause").to(lang), say("first", lang), say("example", lang)]
    lines = [f"**{title(rows, lang)}**", "", f"| {' | '.join(header)} |", "|---:|---|---|---|"]
    for group in groups(rows)[: view.top]:
        cause = f"{escape(group.title)} {code(group.cause, cell=True)}"
        example = f"{code(group.example.job, cell=True)}{colon(lang)}{escape(group.example.headline)}"
        lines.append(f"| {len(group.rows)} | {cause} | {escape(group.remedy)} | {example} |")
    unread = [f"- {code(row.job)}{colon(lang)}{escape(row.error)}" for row in rows if row.status == "unread"]
    return "\n".join([*lines, *(["", f"**{say('unread', lang)}**", "", *unread] if unread else [])]) + "\n"


def as_json(rows: Sequence[Row], _lang: Lang, _view: View) -> str:
    """Every job in a row, and the groups by cause."""
    listed = {"jobs": [of_row(row) for row in sorted(rows, key=lambda row: row.job)], "groups": [of_group(group) for group in groups(rows)]}
    return escaped(json.dumps(listed, ensure_ascii=False, indent=2))


def of_row(row: Row) -> dict[str, object]:
    return {
        "path": row.job,
        "logs": row.logs,
        "status": row.status,
        "cause": row.cause or None,
        "headline": row.headline,
        "remedy": row.remedy or None,
        "error": row.error or None,
    }


def of_group(group: Group) -> dict[str, object]:
    return {
        "cause": group.cause,
        "title": group.title,
        "count": len(group.rows),
        "share": round(group.share, 4),
        "remedy": group.remedy or None,
        "jobs": [row.job for row in group.rows],
    }


SUMMARIES: dict[str, Callable[[Sequence[Row], Lang, View], str]] = {"text": as_text, "json": as_json, "markdown": as_markdown}
