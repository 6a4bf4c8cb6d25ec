"""Groups of failures: every failure counted once, costs with how far they are known, one plan with the edit for each configuration."""

from __future__ import annotations

import json
from typing import Any

import pytest
from clusters import CASES, MONDAY, WEEK, Held, cluster, kept
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep import examples

from diagnose.cluster.report import report_files as report
from diagnose.cluster.report.group_summaries import summarize
from diagnose.cluster.report.report_queries import OLDEST
from diagnose.cluster.report.summary_types import BY, Cost, Group, Summary
from diagnose.cluster.store import group_fingerprint
from diagnose.cluster.store.group_fingerprint import Parts


@pytest.fixture(scope="module")
def held() -> Held:
    return cluster(400)


@pytest.fixture(scope="module")
def found(held: Held) -> Summary:
    return summarize(held)


def of(found: Summary, case: str) -> Group:
    return next(group for group in found.groups if group.key == kept(case)[1])


def test_every_job_is_counted_once(found: Summary) -> None:
    counts = found.counts
    assert (counts.jobs, counts.failed, counts.none) == (400, 200, 200)
    assert sum(group.jobs for group in found.groups) + found.left == counts.failed
    assert sum(cause.jobs for cause in found.causes) == counts.failed
    assert sum(map(sum, found.times.slots)) == found.period.dated


@for_each("by", BY)
def test_every_way_of_grouping_counts_the_same_jobs(held: Held, by: str) -> None:
    told = summarize(held, by)
    assert told.by == by and sum(group.jobs for group in told.groups) == told.counts.failed
    order = [(group.cost.seconds, group.jobs) for group in told.groups]
    assert order == sorted(order, reverse=True), "the most expensive first"
    assert [group.number for group in told.groups] == list(range(1, len(told.groups) + 1))
    assert sum(group.cost.seconds for group in told.groups) == pytest.approx(told.cost.seconds)


def test_no_other_way_of_grouping(held: Held) -> None:
    with pytest.raises(KeyError):
        summarize(held, "weather")


def test_two_cases_of_one_mistake_are_one_group_with_the_edit_for_each_configuration(found: Summary) -> None:
    """LLaMA-Factory and TRL spell gradient checkpointing differently: one plan, two edits."""
    group = of(found, "checkpointing-switched-off")
    assert group.key == kept("adapters-do-not-shrink-activations")[1]
    assert group.plan is not None and [step.remedy for step in group.plan.steps] == ["gradient_checkpointing"]
    first, second = group.plan.variants
    assert (first.framework, second.framework) == ("llamafactory", "trl")
    assert first.jobs + second.jobs == group.jobs and first.jobs > second.jobs
    assert [(edit.key, edit.frm, edit.to) for edit in first.edits] == [("disable_gradient_checkpointing", "true", "false")]
    assert [edit.key for edit in second.edits] == ["gradient_checkpointing", "gradient_checkpointing_kwargs"]
    assert {each.name: each.jobs for each in group.plan.fits} == {"yes": group.jobs}
    assert group.certain == group.jobs and group.title.en and group.title.zh


def test_a_job_that_needs_another_value_stays_in_its_variant_and_is_said() -> None:
    """The old values make the variant; of the new ones the most frequent is shown, with how many need it."""
    held = cluster(400)
    held.connection.execute("""update diagnoses set digest = replace(digest::varchar, '"to":"1536"', '"to":"1024"')::json
        where diagnosis in (select min(diagnosis) from jobs where starts_with(diagnosis, 'llamafactory-6800'))""")
    group = of(summarize(held), "llamafactory-6800")
    assert group.plan is not None
    (variant,) = group.plan.variants
    assert variant.edits[0].to == "1536" and 0 < variant.jobs - variant.alike < variant.jobs


def test_names_of_config_files_make_no_variant() -> None:
    held = cluster(200)
    held.connection.execute("""update diagnoses set digest =
        replace(digest::varchar, '"target":"lora.yaml"', '"target":"run_' || diagnosis || '.yaml"')::json""")
    group = of(summarize(held), "checkpointing-switched-off")
    assert group.plan is not None and len(group.plan.variants) == 2


def test_costs_say_of_how_many_jobs_they_are_known(held: Held, found: Summary) -> None:
    ((seconds, known),) = held.query("select sum(gpu_seconds), count(gpu_seconds) from jobs where status in ('oom', 'suspected')")
    assert (found.cost.seconds, found.cost.known, found.cost.jobs) == (seconds, known, 200)
    assert 0 < known < 200


def test_an_unknown_cost_is_no_cost_of_nothing() -> None:
    held = cluster(60)
    held.connection.execute("update jobs set gpu_seconds = null")
    told = summarize(held)
    assert told.cost.hours is None and Cost(0.0, 1, 1).hours == 0.0
    assert [group.jobs for group in told.groups] == sorted((group.jobs for group in told.groups), reverse=True)


def test_the_dearest_group_leads_however_small_it_is() -> None:
    """Cards times hours, as far as they are known; where no cost is, the largest leads."""
    held = cluster(200)
    key = kept("axolotl-2143")[1]
    held.connection.execute("update jobs set gpu_seconds = 1e9 where fingerprint = ?", [key])
    first = summarize(held).groups[0]
    assert first.key == key and first.jobs < max(group.jobs for group in summarize(held).groups) and first.number == 1


def test_who_made_the_mistake(found: Summary) -> None:
    group = of(found, "checkpointing-switched-off")
    assert group.user_count == 6 and group.project_count == 3
    assert len(group.users) == 5 and group.users[0].jobs >= group.users[-1].jobs
    assert [each.name for each in group.frameworks] == ["llamafactory", "trl"]


def test_near_groups_are_suggested_and_never_merged(found: Summary) -> None:
    group, other = of(found, "llamafactory-6800"), of(found, "a-reference-model-beside-the-policy")
    suggested = {near.key: near for near in group.near}
    assert suggested[other.key].other == ("frame", "model", "card", "stack") and "cause" in suggested[other.key].same
    assert suggested[other.key].number == other.number and group.key not in suggested


@for_each(
    "seen, change",
    [((3,), "new"), ((1, 3), "back"), ((1, 2), "gone"), ((2, 3), ""), ((1, 2, 3), ""), ((1,), "")],
)
def test_what_the_latest_run_changed_is_said(seen: tuple[int, ...], change: str) -> None:
    """New; back after a run without; gone, where the run before had found jobs of it. In text, Markdown and data."""
    held = cluster(200, runs=3)
    key = kept("axolotl-2143")[1]
    jobs = [job for (job,) in held.query("select job from jobs where fingerprint = ? order by job", [key])]
    assert len(jobs) >= 3
    held.connection.execute("update jobs set first_run = 2 where job = (select min(job) from jobs where status = 'none')")
    for number, job in enumerate(jobs):
        held.connection.execute("update jobs set first_run = ? where job = ?", [seen[number % len(seen)], job])
    told = summarize(held, only=[key])
    assert told.groups[0].change == change
    said = {"": "", "new": "new", "back": "back", "gone": "gone"}[change]
    assert (f", {said})" in report.text(told)) is bool(change)
    assert json.loads(report.json(told))["groups"][0]["change"] == (change or None)


def test_everything_is_new_in_a_first_run_so_nothing_is() -> None:
    held = cluster(100)
    held.connection.execute("update jobs set first_run = 1")
    assert not any(group.change for group in summarize(held).groups)


def test_since_leaves_older_failures_out(held: Held) -> None:
    late = MONDAY + WEEK / 2
    told = summarize(held, since=late)
    ((expected,),) = held.query("select count(*) from jobs where status in ('oom', 'suspected') and ended >= ?", [late])
    assert told.counts.failed == expected == sum(group.jobs for group in told.groups) and told.since == late
    assert told.period.first is not None and told.period.first >= late


def test_a_log_without_a_scheduler_is_dated_by_itself() -> None:
    held = cluster(90)
    held.connection.execute("update jobs set modified = ? where ended is null", [MONDAY])
    told = summarize(held)
    assert told.period.dated == told.counts.failed and 0 < told.period.by_log < told.period.dated


def test_a_clock_that_jumped_does_not_stretch_the_chart() -> None:
    """A failure of 1970 or of the next century has no date."""
    held = cluster(100)
    held.connection.execute("update jobs set ended = 0 where job like '%00001/%'")
    held.connection.execute("update jobs set ended = 9e9 where job like '%00002/%'")
    told = summarize(held)
    assert told.period.first is not None and told.period.first > OLDEST
    assert told.times.width < 86400 and told.period.dated < told.counts.failed


def test_how_much_was_missing(held: Held, found: Summary) -> None:
    ((known, median),) = held.query(
        "select count(shortage), median(shortage) from jobs where status in ('oom', 'suspected') and shortage > 0"
    )
    assert sum(found.lack.bins) == found.lack.known == known and found.lack.median == int(median)
    held = cluster(20)
    held.connection.execute("update jobs set shortage = -1")
    told = summarize(held).lack
    assert told.bins[0] == told.known > 0 and told.median is None


@settings(max_examples=examples(20))
@given(st.lists(st.sampled_from(["256 MiB", "1", "512 MiB", "3 GiB", "900 GiB"]), min_size=1, max_size=5))
def test_a_shortage_is_in_the_bin_that_holds_it(sizes: list[str]) -> None:
    """Bin n ends at 256 MiB << (n - 1), its end included."""
    counts = [int(text.split()[0]) << {"MiB": 20, "GiB": 30, "1": 0}[text.split()[-1]] for text in sizes]
    held = cluster(2 * len(sizes), failing=1.0)
    held.connection.execute("update jobs set shortage = null")
    for number, count in enumerate(counts):
        held.connection.execute("update jobs set shortage = ? where job like ?", [count, f"%{number:05}/%"])
    bins = summarize(held).lack.bins
    ends = [256 << 20 << power for power in range(9)]
    expected = [0] * 11
    for count in counts:
        expected[next((at for at, end in enumerate(ends, 1) if count <= end), 10)] += 1
    assert list(bins) == expected


def test_what_could_not_be_read_is_named_with_its_last_fault(held: Held, found: Summary) -> None:
    (lost,) = found.unread
    assert lost.fault == "unreadable" and "permission denied" in lost.message.en
    other = cluster(10)
    ((readable,),) = other.query("select min(job) from jobs")
    other.connection.execute("insert into errors values (1, ?, 'shrunk', 'x', 'x', 0)", [readable])
    assert readable not in [each.job for each in summarize(other).unread], "a part that was missed is no job that was"


def test_the_folder_that_all_jobs_share(found: Summary) -> None:
    assert found.root == "/scratch/runs/"


def test_an_empty_database() -> None:
    told = summarize(Held())
    assert (told.counts.jobs, told.total, told.groups, told.root) == (0, 0, (), "")


def test_a_failure_whose_diagnosis_is_missing_is_counted() -> None:
    """A database that was cut off loses no job."""
    held = cluster(40)
    held.connection.execute("delete from diagnoses")
    told = summarize(held)
    assert sum(group.jobs for group in told.groups) == told.counts.failed == 40
    assert all(group.plan is None and group.parts is None for group in told.groups)


def test_groups_that_are_asked_for_are_found_however_small_they_are(held: Held, found: Summary) -> None:
    """A new group is small: it must not be lost behind two hundred large ones."""
    last = found.groups[-1]
    told = summarize(held, limit=1, only=[last.key])
    assert [group.key for group in told.groups] == [last.key] and told.groups[0].jobs == last.jobs
    assert summarize(held, only=[]).groups == ()


def test_what_comes_back_is_bounded() -> None:
    """Groups beyond the largest are counted, not listed."""
    held = cluster(200)
    held.connection.execute("update jobs set fingerprint = '1:' || job where fingerprint <> ''")
    told = summarize(held, limit=20)
    assert (len(told.groups), told.total, told.left) == (20, 100, 80)


def test_every_case_of_the_cluster_failed() -> None:
    """The cases are failures of memory with a fingerprint; otherwise the tests above would count nothing."""
    rows: list[Any] = [kept(case) for case in CASES]
    assert all(digest and fingerprint for digest, fingerprint in rows)


@for_each(
    "frame, tensor, cause, one",
    [
        ("losses.py:pairwise", "", "logits", True),
        ("train.py:main", "", "logits", False),
        ("train.py:main", "ledger.logits", "logits", True),
        ("losses.py:pairwise", "", "", False),
        ("", "", "long_sample", False),
    ],
)
def test_one_mistake_is_claimed_where_a_place_or_a_tensor_and_a_cause_agree(frame: str, tensor: str, cause: str, one: bool) -> None:
    found = Parts("cuda", "forward", frame, tensor, cause, "", "")
    assert group_fingerprint.is_one_mistake(found) is one
