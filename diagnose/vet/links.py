"""Checks the references of a rule: remedies, other rules, pages, cases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from diagnose import rule_files, vocabulary
from diagnose.decide.competition import ANYTHING, EVERYTHING
from diagnose.vet.fault import Fault
from diagnose.vet.paper import Paper
from diagnose.vet.rule_form import nearest, remedy_words

#: A page, not a front door.
PAGE = re.compile(r"https://[^\s/]+/[^\s]*[^\s/]+/?$")


def check(paper: Paper) -> Iterator[Fault]:
    """The references of one rule that can be checked without the other rules."""
    if paper.room != "remedies":
        for index, word in enumerate(paper.data.get("remedies", ())):
            if word not in remedy_words():
                yield paper.fault(("remedies", index), "unknown_word", word=word, known=nearest(word, remedy_words()))
    yield from references(paper)
    yield from cases(paper)


def references(paper: Paper) -> Iterator[Fault]:
    """Each is an https page, or a case in corpus/."""
    field = "source" if paper.room == "versions" else "references"
    written = paper.data.get(field, ())
    for index, page in enumerate([written] if isinstance(written, str) else written):
        if not PAGE.match(page) and not (page.startswith("corpus/") and (rule_files.HERE.parent / page).is_dir()):
            yield paper.fault((field, index), "no_page", page=page)


def cases(paper: Paper) -> Iterator[Fault]:
    """Cases named by examples exist, if there is a corpus (a wheel has none)."""
    corpus: Path = rule_files.HERE.parent / "corpus"
    for index, example in enumerate(paper.data.get("examples", ())):
        case = example.get("case") if isinstance(example, dict) else None
        if case and corpus.is_dir() and not (corpus.parent / case).is_dir():
            yield paper.fault(("examples", index), "no_case", case=case)


def together(papers: Sequence[Paper]) -> Iterator[Fault]:
    """Ids are unique, `yields_to` names existing rules, and no rules yield to each other in a circle."""
    yield from unique(papers)
    yield from yields(papers)
    yield from circle(papers)


def unique(papers: Sequence[Paper]) -> Iterator[Fault]:
    """No id is used twice in a folder, nor reused after its rule was retired."""
    first_paper: dict[tuple[str, str, str], Paper] = {}
    for paper in papers:
        room = "remedies" if paper.room == "remedies" else "causes"
        former = paper.data.get("formerly", ())
        for name in [str(paper.data["id"]), *([former] if isinstance(former, str) else former)]:
            first = first_paper.setdefault((str(Path(paper.file).parent), room, name), paper)
            if first is not paper:
                yield paper.fault(("id",), "id_taken", id=name, file=first.file)


def yields(papers: Sequence[Paper]) -> Iterator[Fault]:
    rule_ids = (
        {str(paper.data["id"]) for paper in papers if paper.room != "remedies"}
        | set(rule_files.table("vocabulary")["cause"])
        | {ANYTHING, EVERYTHING}
    )
    for paper in papers:
        for index, name in enumerate(paper.data.get("yields_to", ())):
            if name not in rule_ids:
                yield paper.fault(("yields_to", index), "no_such_rule", name=name)
            elif name == paper.data["id"]:
                yield paper.fault(("yields_to", index), "yields_to_itself")


def circle(papers: Sequence[Paper]) -> Iterator[Fault]:
    """No rules yield to each other in a circle, since none of them would ever be shown."""
    causes = {str(paper.data["id"]): paper for paper in papers if paper.room != "remedies"}
    by_cause = rules_by_cause(causes)
    graph = {name: {to for to in targets(paper, causes, by_cause) if to != name} for name, paper in causes.items()}
    done: set[str] = set()
    for start in graph:
        ring = _circle(start, graph, [], done)
        if ring:
            yield causes[ring[0]].fault(("yields_to",), "circle", path=" -> ".join(ring))
            return


def rules_by_cause(causes: Mapping[str, Paper]) -> Mapping[str, Sequence[str]]:
    bad_release = vocabulary.bad_release()
    found: dict[str, list[str]] = {}
    for rule_id, paper in causes.items():
        found.setdefault(paper.data.get("cause", bad_release), []).append(rule_id)
    return found


def targets(paper: Paper, causes: Mapping[str, Paper], by_cause: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The rules that this one yields to: those named, and all rules of causes named."""
    for name in paper.data.get("yields_to", ()):
        if name in causes:
            yield name
        yield from by_cause.get(name, ())


def _circle(at: str, graph: dict[str, set[str]], path: list[str], done: set[str]) -> list[str]:
    if at in path:
        return [*path[path.index(at) :], at]
    if at in done:
        return []
    for to in sorted(graph[at]):
        ring = _circle(to, graph, [*path, at], done)
        if ring:
            return ring
    done.add(at)
    return []
