"""Queries for the summary of a database of jobs, and for each group: title, users, cost, and a common plan."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from diagnose import notebook
from diagnose.cluster.report import report_queries
from diagnose.cluster.report.report_queries import digests
from diagnose.cluster.report.summary_types import (
    Change,
    Cost,
    Example,
    Group,
    Named,
    Near,
    Period,
    Plan,
    Step,
    Store,
    Summary,
    Tried,
    Variant,
    build_or_report,
)
from diagnose.cluster.store import group_fingerprint
from diagnose.cluster.store.digests import edit_of
from diagnose.phrases import Text, phrase

#: So many users, projects, frameworks and variants are listed per group.
NAMES, VARIANTS = 5, 8

#: So many groups are compared with one another, and so many are suggested to each.
COMPARED, SUGGESTED = 100, 3


#: A row per group, the dearest first as far as costs are known; the last column counts them all.
EACH_GROUP = """select key, count(*), coalesce(sum(f.gpu_seconds), 0), count(f.gpu_seconds), min(moment), max(moment), count(moment),
  count(moment) filter (by_log),
  count(*) filter (t.certainty = 'certain'), count(distinct f.fingerprint), count(distinct nullif(f."user", '')),
  count(distinct nullif(f.project, '')), mode(t.title_en order by t.title_en), mode(t.title_zh order by t.title_en),
  mode(t.parts order by t.parts),
  median(f.shortage) filter (f.shortage > 0), list(distinct f.first_run), count(*) over ()
from triage_failed f left join triage_digests t using (diagnosis)
where $2::varchar[] is null or key in (select unnest($2::varchar[]))
group by key order by coalesce(sum(f.gpu_seconds), 0) desc, count(*) desc, key limit $1"""

#: A row per variant: jobs with the same framework, and the same values in the keys that their plan edits. Of the plans that differ in
#: other respects the most frequent stands for the variant; every tie is broken, so that a report is the same each time.
EACH_VARIANT = """with each_job as (
  select key, t.* exclude (framework), coalesce(t.framework, '') as framework, t.fits in ('yes', 'likely') as fitting,
    count(*) over (partition by key, coalesce(t.framework, ''), keys, olds, env, news) as alike
  from triage_failed f join triage_digests t using (diagnosis)
  where key in (select unnest($1)) and t.steps is not null
), ranked as (
  select *, row_number() over (
    partition by key, framework, keys, olds, env order by alike desc, news, steps, targets, renamed, diagnosis) as place
  from each_job
), variants as (
  select key, framework, keys, olds, env, count(*) as jobs, max(alike) as alike, sum(fitting) as fitting,
    arg_min(steps, place) as steps, arg_min(diagnosis, place) as diagnosis
  from ranked group by 1, 2, 3, 4, 5
)
select key, framework, jobs, alike, fitting, steps, env, diagnosis,
  sum(jobs) over (partition by key) as all_jobs
from variants
qualify row_number() over (partition by key order by jobs desc, framework, olds, keys, env) <= $2
order by key, jobs desc, framework, olds, keys, env"""


def read_groups(store: Store, by: str, limit: int, only: Sequence[str] | None = None) -> tuple[tuple[Group, ...], int]:
    """The dearest groups (restricted to the keys `only`), and the number of all groups."""
    rows = list(store.query(EACH_GROUP, [limit, None if only is None else list(only)]))
    keys = [row[0] for row in rows]
    runs = [run for (run,) in store.query("select distinct first_run from jobs where first_run is not null order by 1 desc limit 2")]
    users, projects, frameworks = (_names(store, keys, column) for column in ('f."user"', "f.project", "t.framework"))
    examples = _examples(store, keys)
    plans, tried = _plans(store, keys, examples), _tried(store, keys)
    groups_read = []
    for number, row in enumerate(rows, 1):
        (
            key,
            jobs,
            seconds,
            costed,
            first,
            last,
            dated,
            by_log,
            certain,
            fingerprint_count,
            user_count,
            project_count,
            en,
            zh,
            parts,
            median_shortage,
            first_runs,
            _,
        ) = row
        groups_read.append(
            Group(
                key=key,
                number=number,
                title=Text(en or "", zh or ""),
                jobs=jobs,
                cost=Cost(seconds, costed, jobs),
                period=Period(first, last, dated, by_log),
                certain=certain,
                fingerprints=fingerprint_count,
                users=users.get(key, ()),
                user_count=user_count,
                projects=projects.get(key, ()),
                project_count=project_count,
                frameworks=frameworks.get(key, ()),
                plan=plans.get(key),
                example=examples[key],
                parts=build_or_report(store, examples[key].job, partial(group_fingerprint.read, parts))
                if by == "fingerprint" and parts
                else None,
                short=None if median_shortage is None else int(median_shortage),
                change=change_of(runs, first_runs),
                tried=tried.get(key, ()),
            )
        )
    return tuple(groups_read), rows[0][-1] if rows else 0


def change_of(runs: Sequence[int], seen: Sequence[int | None]) -> Change:
    """How a group changed with the latest run. `runs`: the latest that found jobs, and the one before it; `seen`: those that found the
    group's."""
    if len(runs) < 2:
        return ""
    latest, before = runs
    if latest in seen:
        return "new" if {*seen} == {latest} else "" if before in seen else "back"
    return "gone" if before in seen else ""


def _names(store: Store, keys: list[str], column: str) -> dict[str, tuple[Named, ...]]:
    """The most frequent names of each group."""
    rows = store.query(
        f"""select key, {column} as who, count(*) as jobs from triage_failed f left join triage_digests t using (diagnosis)
        where key in (select unnest($1)) and coalesce({column}, '') <> '' group by 1, 2
        qualify row_number() over (partition by key order by jobs desc, who) <= $2 order by key, jobs desc, who""",
        [keys, NAMES],
    )
    names: dict[str, tuple[Named, ...]] = {}
    for key, name, jobs in rows:
        names[key] = (*names.get(key, ()), Named(name, jobs))
    return names


def _tried(store: Store, keys: list[str]) -> dict[str, tuple[Tried, ...]]:
    """What became of remedies in each group: once for each job whose report says so, and for each note of one."""
    rows = store.query(
        """select key, t.same_job, t.tried, count(*) from triage_failed f join triage_digests t using (diagnosis)
        where key in (select unnest($1)) group by 1, 2, 3""",
        [keys],
    )
    notes = {(note.job, note.remedy): note.result for note in notebook.read()}
    counted: dict[str, Counter[tuple[str, str]]] = {}
    jobs: dict[str, set[str]] = {}
    for key, same_job, tried, count in rows:
        counts = counted.setdefault(key, Counter())
        for result, remedy in _parse_list(tried):
            counts[remedy, result] += count
        jobs.setdefault(key, set()).add(same_job)
    for key, counts in counted.items():
        counts.update((remedy, result) for (job, remedy), result in notes.items() if job in jobs[key])
    return {
        key: tuple(Tried(remedy, counts[remedy, "worked"], counts[remedy, "failed"]) for remedy in sorted({remedy for remedy, _ in counts}))
        for key, counts in counted.items()
        if counts
    }


def _examples(store: Store, keys: list[str]) -> dict[str, Example]:
    """The latest job of each group."""
    rows = store.query(
        """select key, job, name, headline_en, headline_zh, diagnosis from triage_failed f left join triage_digests t using (diagnosis)
        where key in (select unnest($1)) qualify row_number() over (partition by key order by moment desc nulls last, job) = 1""",
        [keys],
    )
    return {key: Example(job, name or job, Text(en or "", zh or ""), diagnosis or "") for key, job, name, en, zh, diagnosis in rows}


def _plans(store: Store, keys: list[str], examples: dict[str, Example]) -> dict[str, Plan]:
    """The common plan of each group: the steps that most of its jobs need, and the config variants, most frequent first."""
    fits: dict[str, tuple[Named, ...]] = {}
    sql = """select key, coalesce(t.fits, 'none'), count(*) from triage_failed f left join triage_digests t using (diagnosis)
        where key in (select unnest($1)) group by 1, 2 order by 1, 3 desc, 2"""
    for key, word, jobs in store.query(sql, [keys]):
        fits[key] = (*fits.get(key, ()), Named(word, jobs))
    rows_by_key: dict[str, list[tuple[Any, ...]]] = {}
    for row in store.query(EACH_VARIANT, [keys, VARIANTS]):
        rows_by_key.setdefault(row[0], []).append(row[1:])
    plans = {
        key: build_or_report(store, examples[key].job, partial(_plan, store, rows_by_key[key], fits.get(key, ()))) for key in rows_by_key
    }
    return {key: plan for key, plan in plans.items() if plan is not None}


def _plan(store: Store, rows: list[tuple[Any, ...]], fits: tuple[Named, ...]) -> Plan:
    """One group's plan, from its rows of EACH_VARIANT."""
    variants: list[tuple[Variant, str]] = []
    told = digests(store, [row[-2] for row in rows])
    for framework, jobs, alike, fitting, steps, env, diagnosis, _ in rows:
        variant = Variant(
            framework,
            jobs,
            alike,
            int(fitting or 0),
            tuple(_parse_list(steps)),
            tuple(map(edit_of, json.loads(told[diagnosis])["plan"]["edits"])),
            tuple(_parse_list(env)),
        )
        variants.append((variant, diagnosis))
    usual_steps, diagnosis = _usual_steps(variants)
    hidden = int(rows[0][-1]) - sum(variant.jobs for variant, _ in variants)
    steps = _steps(usual_steps, told[diagnosis])
    return Plan(steps, tuple(variant for variant, _ in variants), hidden, fits)


def _steps(steps: tuple[str, ...], digest: str) -> tuple[Step, ...]:
    """The steps of a plan, with titles from a diagnosis that contains them."""
    remedies = {remedy["remedy"]: remedy for remedy in json.loads(digest)["remedies"]}
    return tuple(
        Step(step, Text(**remedies[step]["title"]), remedies[step]["price"]["results"], remedies[step]["price"]["speed"])
        if step in remedies
        else Step(step, phrase(f"render.remedy_{step}"), "", "")
        for step in steps
    )


def _parse_list(text: str | None) -> list[Any]:
    return json.loads(text) if text else []


def _usual_steps(variants: list[tuple[Variant, str]]) -> tuple[tuple[str, ...], str]:
    """The steps that most jobs need, and a diagnosis that contains them."""
    jobs: dict[tuple[str, ...], int] = {}
    for variant, _ in variants:
        jobs[variant.steps] = jobs.get(variant.steps, 0) + variant.jobs
    usual = max(jobs, key=lambda steps: jobs[steps])
    return usual, next(diagnosis for variant, diagnosis in variants if variant.steps == usual)


# -- the summary


def summarize(
    store: Store, by: str = "fingerprint", since: float | None = None, limit: int = 200, only: Sequence[str] | None = None
) -> Summary:
    """The jobs of a database (those that failed at or after `since`, in seconds since 1970), its dearest groups first; with `only` these
    groups and no others.

    Raises KeyError where `by` is none of BY.
    """
    report_queries.prepare(store, by, since)
    groups, total = read_groups(store, by, limit, only)
    listed = neighbours(groups) if by == "fingerprint" else groups
    return Summary(
        by=by,
        since=since,
        counts=report_queries.counts(store, since),
        states=report_queries.states(store, since),
        cost=report_queries.cost(store),
        period=report_queries.period(store),
        groups=listed,
        total=total,
        causes=report_queries.causes(store),
        times=report_queries.times(store, [group.key for group in listed]),
        lack=report_queries.lack(store),
        unread=report_queries.unread(store),
        root=report_queries.root(store),
        tool=report_queries.tool(store),
    )


def neighbours(groups: tuple[Group, ...]) -> tuple[Group, ...]:
    """The groups, each with similar groups that may be the same mistake, most similar first."""
    compared = groups[:COMPARED]
    return tuple(replace(group, near=_near(group, compared)) if group.number <= COMPARED else group for group in groups)


def _near(group: Group, groups: tuple[Group, ...]) -> tuple[Near, ...]:
    if group.parts is None:
        return ()
    similar = []
    for candidate in groups:
        likeness = (
            group_fingerprint.near(group.parts, candidate.parts) if candidate.parts is not None and candidate.key != group.key else None
        )
        if likeness is not None:
            similar.append(Near(candidate.key, candidate.number, likeness.similarity, likeness.same, likeness.other))
    return tuple(sorted(similar, key=lambda near: (-near.similarity, near.number))[:SUGGESTED])
