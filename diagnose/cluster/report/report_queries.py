"""SQL queries over all jobs for the summary. Digests are parsed once into narrow temporary tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from time import time
from typing import Any

from diagnose.cluster.report.summary_types import Cause, Cost, Counts, Lack, Named, Period, Store, Summary, Times, Unread
from diagnose.phrases import Text
from diagnose.records import NamedTuple
from diagnose.version import __version__

#: What a group's key is, in SQL.
KEYS = {
    "fingerprint": "j.fingerprint",
    "cause": "t.cause",
    "phase": "j.phase",
    "family": "j.family",
    "tensor": "t.tensor",
    "frame": "t.frame",
    "framework": "t.framework",
    "user": 'j."user"',
    "project": "j.project",
    "gpu": "j.gpu",
}

#: So many unread jobs are listed, and states of jobs that did not fail of memory.
UNREAD, STATES = 200, 6

#: Groups with a colour of their own in the chart of times, and slots that it has at most.
COLOURED, SLOTS = 5, 40

#: Widths of a slot in seconds: hours, days, weeks, four weeks; then twice as much again and again.
WIDTHS = (3600, 3 * 3600, 6 * 3600, 86400, 7 * 86400, 28 * 86400)

#: Weeks begin on Mondays; 1970 began on a Thursday.
MONDAY = 4 * 86400

#: No failure is older than Slurm's own accounting, or younger than a day that a clock may be ahead.
OLDEST, AHEAD = 946_684_800.0, 86400.0

#: The first bin above nothing, and how many there are.
FIRST_BIN, BINS = 256 << 20, 10

#: Column names and the JSON paths of a digest that fill them; the paths of a plan's edits give lists.
DIGEST_PATHS = {
    "framework": "$.framework",
    "tensor": "$.parts.tensor",
    "frame": "$.parts.frame",
    "cause": "$.causes[0].cause",
    "certainty": "$.causes[0].certainty",
    "title_en": "$.causes[0].title.en",
    "title_zh": "$.causes[0].title.zh",
    "parts": "$.parts",
    "headline_en": "$.headline.en",
    "headline_zh": "$.headline.zh",
    "steps": "$.plan.steps",
    "fits": "$.plan.fits",
    "env": "$.plan.env",
    "same_job": "$.job",
    "tried": "$.tried",
    "edits": "$.plan.edits",
}
EDIT_PATHS = {"keys": "$[*].key", "olds": "$[*].from", "news": "$[*].to", "targets": "$[*].target", "renamed": "$[*].renamed"}

#: Each digest is parsed once, and its edits once more.
DIGESTS_TABLE = """
create or replace temp table triage_digests as
select diagnosis, {asked}, {edited}
from (select diagnosis, json_extract_string(digest, [{paths}]) as fields from diagnoses)""".format(
    asked=", ".join(f"fields[{at}] as {name}" for at, name in enumerate(DIGEST_PATHS, 1) if name != "edits"),
    edited=", ".join(f"json_extract(fields[{len(DIGEST_PATHS)}], '{path}')::varchar as {name}" for name, path in EDIT_PATHS.items()),
    paths=", ".join(f"'{path}'" for path in DIGEST_PATHS.values()),
)

FAILED_TABLE = """
create or replace temp table triage_failed as
select j.job, j.name, j.diagnosis, coalesce({key}, '') as key, j.fingerprint, j.gpu_seconds, j."user", j.project,
  j.requested, j.shortage, j.first_run, j.status, j.logs[1] as log,
  coalesce(j.ended, j.started, j.submitted) is null as by_log,
  case when {at} between {oldest} and {newest} then {at} end as moment
from jobs j left join triage_digests t using (diagnosis)
where j.status in ('oom', 'suspected') and ({since} is null or {at} >= {since})"""

#: When a job ended: as its scheduler says, else when its logs were written last.
ENDED = "coalesce(j.ended, j.started, j.submitted, j.modified)"


def prepare(store: Store, by: str, since: float | None) -> None:
    """Create the temporary tables that the other queries use."""
    limits = {"oldest": OLDEST, "newest": time() + AHEAD, "since": "null" if since is None else float(since)}
    execute(store, DIGESTS_TABLE)
    execute(store, FAILED_TABLE.format(key=KEYS[by], at=ENDED, **limits))


def execute(store: Store, sql: str, params: Sequence[object] = ()) -> None:
    for _ in store.query(sql, params):
        pass


def fetch_row(store: Store, sql: str, params: Sequence[object] = ()) -> tuple[Any, ...]:
    return next(iter(list(store.query(sql, params))))


def counts(store: Store, since: float | None) -> Counts:
    """Jobs by status. Unreadable jobs have no time of their own and count regardless of `since`."""
    sql = f"""select coalesce(j.status, 'unread'), count(*) from jobs j
        where $1::double is null or j.status = 'unread' or {ENDED} >= $1 group by 1"""
    by_status = dict(store.query(sql, [since]))
    return Counts(sum(by_status.values()), *(by_status.get(status, 0) for status in ("oom", "suspected", "lookalike", "none", "unread")))


def states(store: Store, since: float | None) -> tuple[Named, ...]:
    """Scheduler states of jobs without a memory failure, most frequent first. (CANCELLED by 1000 is CANCELLED.)"""
    sql = f"""select regexp_replace(j.state, ' .*', '') as how, count(*) as jobs from jobs j
        where j.status in ('none', 'lookalike') and j.state <> '' and ($1::double is null or {ENDED} >= $1)
        group by 1 order by jobs desc, how limit {STATES}"""
    return tuple(Named(*row) for row in store.query(sql, [since]))


def cost(store: Store) -> Cost:
    """The cost of all failures."""
    return Cost(*fetch_row(store, "select coalesce(sum(gpu_seconds), 0), count(gpu_seconds), count(*) from triage_failed"))


def period(store: Store) -> Period:
    return Period(*fetch_row(store, "select min(moment), max(moment), count(moment), count(moment) filter (by_log) from triage_failed"))


def root(store: Store) -> str:
    """The common folder of all jobs; of a single job its own."""
    first, last = fetch_row(store, "select min(job), max(job) from jobs")
    pairs = zip(first or "", last or "", strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return (first or "")[: (first or "")[:same].rfind("/") + 1]


def tool(store: Store) -> str:
    """The version of the latest diagnosis."""
    return next((str(value) for (value,) in store.query("select value from meta where key = 'tool'")), __version__)


def unread(store: Store) -> tuple[Unread, ...]:
    """Unreadable jobs, with the last of their faults."""
    rows = store.query(
        """select job, fault, message_en, message_zh from errors
        where job not in (select job from jobs where status <> 'unread')
        qualify row_number() over (partition by job order by seen desc nulls last, fault, message_en, message_zh) = 1
        order by job limit $1""",
        [UNREAD],
    )
    return tuple(Unread(job, fault or "", Text(en or "", zh or "")) for job, fault, en, zh in rows)


def causes(store: Store) -> tuple[Cause, ...]:
    """The leading causes, most frequent first."""
    rows = store.query(
        """select coalesce(t.cause, ''), mode(t.title_en order by t.title_en), mode(t.title_zh order by t.title_en),
          sum(f.gpu_seconds), count(f.gpu_seconds), count(*)
        from triage_failed f left join triage_digests t using (diagnosis) group by 1 order by count(*) desc, 1"""
    )
    return tuple(
        Cause(cause, Text(en or "", zh or ""), jobs, Cost(seconds or 0.0, costed, jobs)) for cause, en, zh, seconds, costed, jobs in rows
    )


def times(store: Store, keys: Sequence[str]) -> Times:
    """Failures by time slot, for each of the first groups and for all others."""
    first, last = fetch_row(store, "select min(moment), max(moment) from triage_failed")
    if first is None:
        return Times()
    width = next((candidate for candidate in WIDTHS if (last - first) / candidate < SLOTS - 1), WIDTHS[-1])
    while (last - first) / width >= SLOTS - 1:
        width *= 2
    shift = MONDAY if width >= 7 * 86400 else 0
    begin = int((first - shift) // width)
    coloured = list(keys[:COLOURED])
    slots = [[0] * (len(coloured) + 1) for _ in range(int((last - shift) // width) - begin + 1)]
    sql = "select cast(floor((moment - $1) / $2) as bigint), key, count(*) from triage_failed where moment is not null group by 1, 2"
    for slot, key, jobs in store.query(sql, [shift, width]):
        slots[slot - begin][coloured.index(key) if key in coloured else len(coloured)] += jobs
    return Times(float(begin * width + shift), width, tuple(map(tuple, slots)), len(coloured))


def lack(store: Store) -> Lack:
    """A histogram of missing memory by powers of two."""
    bins = dict(
        store.query(
            """select case when shortage <= 0 then 0
              else least($2, 1 + greatest(0, cast(ceil(log2(shortage / $1)) as integer))) end, count(*)
            from triage_failed where shortage is not null group by 1""",
            [float(FIRST_BIN), BINS],
        )
    )
    known_jobs, median = fetch_row(store, "select count(shortage), median(shortage) filter (shortage > 0) from triage_failed")
    return Lack(
        tuple(bins.get(number, 0) for number in range(BINS + 1)) if bins else (), known_jobs, None if median is None else int(median)
    )


# -- jobs


class Failed(NamedTuple):
    """A failed job as listed in the report; `number` of its group, 0 if that is not listed."""

    number: int
    job: str
    name: str
    moment: float | None
    user: str
    project: str
    gpu_seconds: float | None
    requested: int | None
    shortage: int | None
    diagnosis: str
    status: str
    log: str  # the first of its logs


def jobs(store: Store, summary: Summary, limit: int) -> list[Failed]:
    """The latest failures in a summary, by group, latest first within each."""
    prepare(store, summary.by, summary.since)  # another summary may have been made in between
    keys = [group.key for group in summary.groups]
    execute(store, "create or replace temp table triage_listed(key varchar, number integer)")
    execute(
        store,
        "insert into triage_listed select unnest($1::varchar[]), unnest(range(1, $2 + 1))",
        [keys, len(keys)],
    )
    rows = store.query(
        """select coalesce(l.number, 0), job, name, moment, coalesce("user", ''), coalesce(project, ''), gpu_seconds, requested, shortage,
          coalesce(diagnosis, ''), status, coalesce(log, '')
        from triage_failed left join triage_listed l using (key)
        qualify row_number() over (order by moment desc nulls last, job) <= $1
        order by l.number nulls last, moment desc nulls last, job""",
        [limit],
    )
    return [Failed(*row) for row in rows]


def digests(store: Store, diagnoses: Sequence[str]) -> dict[str, str]:
    """Stored digests by key."""
    return dict(store.query("select diagnosis, digest from diagnoses where diagnosis in (select unnest($1::varchar[]))", [list(diagnoses)]))
