"""Writes the report as files: the page, and a folder of pages with the jobs' diagnoses."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from diagnose.cluster.report import report_masks, report_queries, report_words
from diagnose.cluster.report.report_html import Listed, TextFilter, page
from diagnose.cluster.report.report_pages import JobsPage, render_page
from diagnose.cluster.report.report_queries import Failed
from diagnose.cluster.report.report_words import say
from diagnose.cluster.report.summary_types import Store, Summary
from diagnose.phrases import Lang
from diagnose.records import NamedTuple
from diagnose.render.parts.strings import harmless, map_texts, one_line
from diagnose.whole_file import draft

#: Failures that get a page, the latest first; diagnoses and jobs on one page.
DETAILED, DIAGNOSES, JOBS = 20_000, 60, 400

#: File names of the pages beside a report: nothing else is ever deleted.
OURS = re.compile(r"group-\d+-\d+\.html")


class Sheet(NamedTuple):
    """A page of job diagnoses during layout: its group, its number within the group, its jobs."""

    number: int
    at: int
    jobs: list[Failed]

    @property
    def name(self) -> str:
        return f"group-{self.number}-{self.at}.html"


def single_page(store: Store, summary: Summary, lang: Lang, redact: bool) -> str:
    """The report page alone, whose jobs have no pages of their own."""
    mask = report_masks.masks(store, summary.root) if redact else None
    clean = _text_filter(mask)
    jobs = [_listed(job, "", summary.root, clean) for job in report_queries.jobs(store, summary, DETAILED)]
    return "".join(page(_clean_summary(summary, mask), sorted(jobs, key=_latest_first), {}, lang, masked=redact))


def write_pages(store: Store, summary: Summary, target: Path, lang: Lang, redact: bool) -> list[Path]:
    """Write `target` and, in the folder STEM-files beside it, the pages with the jobs' diagnoses; what was written, the report first.

    Every file is there whole or as it was before; of an earlier report's pages those that are not written again are removed.
    Raises OSError where that cannot be done.
    """
    mask = report_masks.masks(store, summary.root) if redact else None
    clean, visible = _text_filter(mask), _clean_summary(summary, mask)
    folder = target.with_name(f"{target.stem}-files")
    beside = _as_link(folder)
    sheets = list(_sheets(report_queries.jobs(store, summary, DETAILED)))
    titles = {group.number: report_words.title(group, visible.by, lang) for group in visible.groups}
    target.parent.mkdir(parents=True, exist_ok=True)
    if sheets:
        folder.mkdir(exist_ok=True)
    listed: list[Listed] = []
    written: list[Path] = []
    for number, pages in groupby(sheets, key=lambda sheet: sheet.number):
        group = list(pages)
        for sheet in group:
            order = list(dict.fromkeys(job.diagnosis for job in sheet.jobs))
            anchors = {diagnosis: f"{beside}/{sheet.name}#d{at}" for at, diagnosis in enumerate(order, 1)}
            jobs = [_listed(job, anchors[job.diagnosis], summary.root, clean, with_log=not redact) for job in sheet.jobs]
            listed += jobs
            content = JobsPage(
                title=titles.get(number, say("others", lang)),
                number=number,
                at=sheet.at,
                of=len(group),
                jobs=tuple(jobs),
                report=f"../{_as_link(target)}",
                before=group[sheet.at - 2].name if sheet.at > 1 else "",
                after=group[sheet.at].name if sheet.at < len(group) else "",
            )
            written.append(_write_page(folder / sheet.name, render_page(content, store, order, lang, clean)))
    addresses = {sheet.number: f"{beside}/{sheet.name}" for sheet in reversed(sheets)}
    written.insert(0, _write_page(target, page(visible, sorted(listed, key=_latest_first), addresses, lang, masked=redact)))
    for stale in folder.iterdir() if folder.is_dir() else ():
        if OURS.fullmatch(stale.name) and stale not in written:
            stale.unlink(missing_ok=True)
    return written


def _as_link(path: Path) -> str:
    """A name as a page links to it, whatever its bytes are."""
    return quote(os.fsencode(path.name))


def _clean_summary(summary: Summary, mask: report_masks.Masks | None) -> Summary:
    return map_texts(summary if mask is None else report_masks.summary(summary, mask), harmless)


def _latest_first(entry: Listed) -> tuple[float, str]:
    """Sort jobs by date, latest first; undated ones last."""
    return -(entry.job.moment or 0.0), entry.name


def _text_filter(mask: report_masks.Masks | None) -> TextFilter:
    return one_line if mask is None else lambda text: one_line(mask(text))


def _sheets(jobs: list[Failed]) -> Iterator[Sheet]:
    """Split the jobs of a group into pages, by number of jobs and of distinct diagnoses."""
    for number, group in groupby(jobs, key=lambda job: job.number):
        sheet, diagnoses = Sheet(number, 1, []), set[str]()
        for job in group:
            if sheet.jobs and (len(sheet.jobs) >= JOBS or (len(diagnoses) >= DIAGNOSES and job.diagnosis not in diagnoses)):
                yield sheet
                sheet, diagnoses = Sheet(number, sheet.at + 1, []), set()
            sheet.jobs.append(job)
            diagnoses.add(job.diagnosis)
        yield sheet


def _listed(job: Failed, address: str, root: str, clean: TextFilter, with_log: bool = False) -> Listed:
    """A job by its name or its path below the common folder, with the address of its diagnosis."""
    name = job.name if job.name and job.name != job.job else job.job
    below = root and name.startswith(root) and len(name) > len(root)
    log = f"file://{quote(os.fsencode(Path(job.log).resolve()))}" if with_log and Path(job.log).is_file() else ""
    return Listed(job, clean(name[len(root) :] if below else name), clean(job.user), address, log)


def _write_page(target: Path, pieces: Iterable[str]) -> Path:
    with draft(target) as beside, beside.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
        file.writelines(pieces)
    return target
