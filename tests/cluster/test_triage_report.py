"""The report in every form: what it says, what it hides, and that a stranger's text stays text."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from clusters import THOUSANDS, USERS, Held, cluster, kept, report_of_thousands
from collected import for_each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sweep import SWEEP
from syrupy.assertion import SnapshotAssertion

from diagnose.cluster.report import page_files, report_html, report_words
from diagnose.cluster.report import report_files as report
from diagnose.cluster.report.group_summaries import summarize
from diagnose.cluster.report.summary_types import BY, Summary
from diagnose.cluster.report.webhooks import group_message
from diagnose.phrases import Lang
from diagnose.render.markup.chat_within_limit import dialect
from diagnose.render.parts.view import View
from diagnose.render.parts.wrapping import cells

LANGS: list[Lang] = ["en", "zh"]


@pytest.fixture(scope="module")
def held() -> Held:
    return cluster(200)


@pytest.fixture(scope="module")
def found(held: Held) -> Summary:
    return replace(summarize(held), tool="TEST")


# -- text, Markdown, JSON, chats


@pytest.mark.parametrize("lang", LANGS)
def test_text(found: Summary, lang: Lang, snapshot: SnapshotAssertion) -> None:
    text = report.text(found, lang, View(top=4))
    assert text == snapshot
    assert max(map(cells, text.splitlines())) <= 80


@pytest.mark.parametrize("lang", LANGS)
def test_markdown(found: Summary, lang: Lang, snapshot: SnapshotAssertion) -> None:
    assert report.markdown(found, lang) == snapshot


def test_it_is_said_from_which_release_on_an_added_key_is_there(tmp_path: Path) -> None:
    """Of the plan of each variant, and of each job; a digest that an older version kept says nothing."""
    store = cluster(24, failing=1.0)
    for is_dated in (False, True):
        for diagnosis, text in list(store.query("select diagnosis, digest from diagnoses")):
            told = json.loads(text)
            for edit in (told["plan"] or {"edits": []})["edits"]:
                edit.pop("since", None)
                edit |= {"since": {"program": "axolotl", "release": "0.12", "before": ""}} if is_dated else {}
            store.connection.execute("update diagnoses set digest = ? where diagnosis = ?", [json.dumps(told), diagnosis])
        found = summarize(store)
        group = next(group for group in found.groups if group.plan and any(variant.edits for variant in group.plan.variants))
        clauses: dict[Lang, str] = {"en": "Axolotl 0.12 or newer", "zh": "需 Axolotl 0.12 及以上"}
        for lang, clause in clauses.items():
            pages = report.write_html(store, found, tmp_path / "report.html", lang, redact=False)
            written = [page.read_text(encoding="utf-8") for page in pages]
            texts = [
                re.sub(r"\s+", " ", report.text(found, lang, View(top=30))),
                report.markdown(found, lang),
                group_message(group, "slack", lang).text,
            ]
            assert [clause in text for text in (*texts, *written[:2])] == [is_dated] * 5


@for_each("by", BY)
def test_every_way_of_grouping_can_be_told(held: Held, by: str) -> None:
    """No placeholder is left unfilled, no line is too wide, whatever failures are grouped by."""
    told = summarize(held, by)
    texts = [report.text(told, lang, View(top=30)) for lang in LANGS]
    assert max(cells(line) for text in texts for line in text.splitlines()) <= 80
    html = (report.html(held, told, lang, redact=False) for lang in LANGS)
    pages = [re.sub(r"<(script|style)>.*?</\1>", "", page, flags=re.DOTALL) for page in html]
    for written in (*texts, *(report.markdown(told, lang) for lang in LANGS), *pages):
        left = set(re.findall(r"\{[a-z_]+\}", written))
        assert left <= {"{shown}", "{total}"}, "what the script fills in"


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (("shorten", "expandable_segments"), ""),
        (("shorten", "expandable_segments", "liger"), "also needs: LIGER"),
        (("liger",), "needs instead: LIGER"),
        (("shorten",), "needs only: SHORTEN"),
    ],
)
def test_a_variant_says_how_its_steps_differ(found: Summary, monkeypatch: pytest.MonkeyPatch, steps: tuple[str, ...], said: str) -> None:
    monkeypatch.setattr("diagnose.render.parts.words.name_of", lambda _, name, __: name.upper())
    group = next(group for group in found.groups if group.plan is not None and len(group.plan.steps) == 2)
    assert group.plan is not None
    planned = (replace(group.plan.steps[0], remedy="shorten"), replace(group.plan.steps[1], remedy="expandable_segments"))
    told = replace(group, plan=replace(group.plan, steps=planned))
    variant = replace(group.plan.variants[0], steps=steps, alike=group.plan.variants[0].jobs)
    assert report_words.variant_note(told, variant, "en") == said


def test_how_the_other_jobs_ended_is_counted() -> None:
    held = cluster(100)
    held.connection.execute("update jobs set state = case when hash(job) % 3 = 0 then 'CANCELLED by 7' else 'COMPLETED' end")
    told = summarize(held)
    others = told.counts.none + told.counts.lookalike
    assert [each.name for each in told.states] == ["COMPLETED", "CANCELLED"] and sum(each.jobs for each in told.states) == others
    assert f"{others} not ({told.states[0].jobs} COMPLETED, {told.states[1].jobs} CANCELLED)" in report.text(told)
    assert json.loads(report.json(told))["jobs"]["states"][0] == {"name": "COMPLETED", "jobs": told.states[0].jobs}
    alike = replace(told, states=(replace(told.states[0], jobs=others),))
    assert f"{others} not (all COMPLETED)" in report.text(alike)


@pytest.mark.parametrize("lang", LANGS)
def test_nothing_failed(lang: Lang, tmp_path: Path) -> None:
    for store in (cluster(20, failing=0.0), Held()):
        told = summarize(store)
        assert report.text(told, lang) and report.markdown(told, lang)
        (page,) = report.write_html(store, told, tmp_path / "report.html", lang)
        assert "<h1>" in page.read_text(encoding="utf-8")


def test_json_has_every_figure(found: Summary) -> None:
    data: dict[str, Any] = json.loads(report.json(found))
    assert data["schema"] == "oomdoctor.triage/1" and data["tool"]["version"] == "TEST"
    assert sum(group["jobs"] for group in data["groups"]) == data["jobs"]["oom"] + data["jobs"]["suspected"]
    first = data["groups"][0]
    assert first["cost"]["jobs"] == first["jobs"] > first["cost"]["known"] > 0
    assert [variant["framework"] for variant in first["plan"]["variants"]] == ["llamafactory", "trl"]
    unknown = replace(found.groups[0], cost=replace(found.groups[0].cost, known=0, seconds=0.0))
    assert json.loads(report.json(replace(found, groups=(unknown,))))["groups"][0]["cost"]["gpu_seconds"] is None


@for_each("lang", LANGS)
@for_each("platform", ["slack", "discord", "feishu"])
def test_messages_of_chats_hold_what_a_platform_holds(found: Summary, platform: Any, lang: Lang) -> None:
    messages = [group_message(group, platform, lang) for group in found.groups]
    for message in messages:
        assert message.text and "@" not in message.text.replace("@\u200b", "")
        assert dialect(platform).length(message.text) <= dialect(platform).limit
    assert "disable_gradient_checkpointing: false" in messages[0].text


def test_a_long_message_is_cut_between_its_parts(found: Summary) -> None:
    group = replace(
        found.groups[0], example=replace(found.groups[0].example, headline=type(found.groups[0].title)("long " * 2000, "长" * 9000))
    )
    message = group_message(group, "discord")
    assert message.cut and dialect("discord").length(message.text) <= dialect("discord").limit
    assert message.text.count("```") % 2 == 0


# -- the page


class Read(HTMLParser):
    """Tags, ids, links and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.scripts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id" and value:
                self.ids.append(value)
            if name in ("href", "src") and value:
                self.links.append(value)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)


def pages(written: list[Path]) -> dict[Path, Read]:
    return {path: Read(path.read_text(encoding="utf-8")) for path in written}


@pytest.mark.parametrize("lang", LANGS)
def test_every_link_leads_somewhere_and_every_job_to_its_diagnosis(held: Held, found: Summary, lang: Lang, tmp_path: Path) -> None:
    read = pages(report.write_html(held, found, tmp_path / "report.html", lang))
    for path, page in read.items():
        assert len(page.ids) == len(set(page.ids)), path
        for link in page.links:
            target, _, anchor = unquote(link).partition("#")
            other = (path.parent / target).resolve() if target else path
            assert other in read, f"{path.name} links {link}"
            assert not anchor or anchor in read[other].ids, f"{path.name} links {link}"
    (main,) = [page for path, page in read.items() if path.name == "report.html"]
    assert sum(1 for link in main.links if re.search(r"group-\d+-\d+\.html#d\d+$", link)) == found.counts.failed
    assert main.tags.count("article") == 0 and sum(page.tags.count("article") for page in read.values()) > 20


def test_a_page_loads_and_runs_nothing_but_its_own(held: Held, found: Summary, tmp_path: Path) -> None:
    """The policy names the style and the script by their hashes; there is no style attribute, no handler, no address of a network."""
    for path, page in pages(report.write_html(held, found, tmp_path / "report.html")).items():
        text = path.read_text(encoding="utf-8")
        assert page.tags.count("script") == page.tags.count("style") == 1
        (script,) = page.scripts
        assert f"script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" in text.replace("&#39;", "'")
        assert "default-src 'none'" in text.replace("&#39;", "'")
        assert not {each for each in page.attributes if each.startswith("on") or each in ("style", "src")}
        assert not [link for link in page.links if "//" in link]


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style><b>",
    "]]>-->",
    "&lt;b&gt;",
    "{shown}",
    "\u202e\x1b[31m",
    "a`b|c*d_e",
]
texts = st.one_of(
    st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30)
)


@settings(max_examples=10 if SWEEP else 3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(texts, min_size=8, max_size=8))
def test_what_a_stranger_wrote_stays_text(tmp_path: Path, words: list[str]) -> None:
    """Names of jobs, users, projects and cards, lines of logs, keys and values of configs, messages of errors."""
    store = cluster(24, failing=1.0)
    job, user, project, line, key, value, message, headline = words
    store.connection.execute("""update jobs set job = job || ?, "user" = ?, project = ?, gpu = ?""", [job, user, project, value])
    store.connection.execute("update errors set job = ?, message_en = ?, message_zh = ?", [job, message, message])
    for diagnosis, text in list(store.query("select diagnosis, digest from diagnoses")):
        told = json.loads(text)
        told["headline"] = {"en": headline, "zh": headline}
        told["framework"] = value
        told["parts"].update(frame=line, knobs=f"{key}={value}", tensor=value)
        told["event"]["line"] = {"source": key, "line": 1, "key": None, "text": line}
        for edit in (told["plan"] or {"edits": []})["edits"]:
            edit.update(target=job, key=key, to=value)
        store.connection.execute("update diagnoses set digest = ? where diagnosis = ?", [json.dumps(told), diagnosis])
    told = summarize(store)
    for redact in (True, False):
        for path, page in pages(report.write_html(store, told, tmp_path / "report.html", redact=redact)).items():
            assert page.tags.count("script") == page.tags.count("style") == 1 and "img" not in page.tags
            assert not {each for each in page.attributes if each.startswith("on") or each in ("style", "src", "srcset")}, path
            assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", path.read_text(encoding="utf-8"))
    for written in (report.text(told), report.markdown(told), report.json(told)):
        assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", written)
    outside = re.sub(r"^(`{3,})diff$.*?^\1$", "", report.markdown(told), flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"(?<!\\)<\w", re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", outside))


def test_people_machines_and_folders_are_masked_unless_one_asks(held: Held, found: Summary, tmp_path: Path) -> None:
    held.connection.execute("insert into events (job, host) values ('x', 'gpu-node-17')")
    told = replace(
        found, groups=(replace(found.groups[0], example=replace(found.groups[0].example, name="gpu-node-17:/x/amber")), *found.groups[1:])
    )

    def all_of(redact: bool) -> str:
        return "\n".join(
            path.read_text(encoding="utf-8") for path in report.write_html(held, told, tmp_path / "report.html", redact=redact)
        )

    shown, masked = all_of(False), all_of(True)
    for secret in (*USERS, "gpu-node-17", "/scratch/runs/"):
        assert re.search(rf"\b{secret}\b" if secret.isalnum() else re.escape(secret), shown), secret
        assert not re.search(rf"\b{secret}\b" if secret.isalnum() else re.escape(secret), masked), secret
    assert "&lt;user-1&gt;" in masked and "pretraining" in masked
    assert "/scratch/runs" not in report.text(report.masked(held, told)) and "/scratch/runs" in report.text(told)


def test_a_report_replaces_the_one_before(tmp_path: Path) -> None:
    """Pages that are not written again are removed; what is not ours stays."""
    target = tmp_path / "report.html"
    store = cluster(100)
    report.write_html(store, summarize(store), target)
    (tmp_path / "report-files" / "notes.txt").write_text("mine")
    before = {path.name for path in (tmp_path / "report-files").iterdir()}
    store = cluster(8)
    written = report.write_html(store, summarize(store), target)
    after = {path.name for path in (tmp_path / "report-files").iterdir()}
    assert after == {path.name for path in written[1:]} | {"notes.txt"} and after < before


def test_a_disk_that_is_full_leaves_the_report_before(held: Held, found: Summary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.html"
    report.write_html(held, found, target)
    before = target.read_text(encoding="utf-8")

    def full(*_: Any, **__: Any) -> Any:
        yield "<!doctype html>" * 10_000
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(page_files, "page", full)
    with pytest.raises(OSError, match="No space"):
        report.write_html(held, found, target)
    assert target.read_text(encoding="utf-8") == before and not list(tmp_path.rglob("*.part"))


def test_ten_thousand_failures() -> None:
    """The page stays within 10 MB, the pages beside it can be opened each; every failure is in the page."""
    page = report_of_thousands() / "report.html"
    sizes = [path.stat().st_size for path in page.parent.rglob("*.html") if path != page]
    assert page.stat().st_size < 10_000_000 and max(sizes) < 2_000_000
    assert page.read_text(encoding="utf-8").count("#d") >= THOUSANDS


def test_thousands_of_mistakes(tmp_path: Path) -> None:
    """No two alike: the largest groups are listed, the others counted, and every failure still has its page. A tenth of what
    the test above reads, since each has a page of its own; so may be the bytes."""
    store = cluster(THOUSANDS // 10, failing=1.0)
    store.connection.execute("update jobs set fingerprint = '1:' || job")
    told = summarize(store)
    written = report.write_html(store, told, tmp_path / "report.html")
    text, left = written[0].read_text(encoding="utf-8"), THOUSANDS // 10 - 200
    assert len(text.encode()) < 1_000_000 and text.count("#d") >= THOUSANDS // 10
    assert f"{left} failures in {left} cheaper groups are not listed." in report.text(told, view=View(top=500))


def test_what_has_no_room_is_said(held: Held, found: Summary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_html, "ROOM", 20_000)
    page = report.html(held, found)
    assert re.search(r"The latest \d+ of 100 failures", page)


def test_a_group_that_is_not_listed_has_pages_too(tmp_path: Path) -> None:
    store = cluster(200)
    told = summarize(store, limit=3)
    written = report.write_html(store, told, tmp_path / "report.html")
    assert tmp_path / "report-files" / "group-0-1.html" in written
    ((diagnoses,),) = store.query("select count(distinct diagnosis) from jobs where status in ('oom', 'suspected')")
    assert sum(page.tags.count("article") for page in pages(written).values()) == diagnoses


def test_the_page_names_the_mistake_of_the_week_first(found: Summary, held: Held) -> None:
    """The question of Monday morning: how many, what, what it cost, what to change."""
    page = report.html(held, found)
    heading = page.index("<h1>")
    cost, edit = "GPU-hours, known for", "disable_gradient_checkpointing: false"
    for words in ("42 of 100 memory failures are one mistake.", "Every layer&#39;s activations", cost, edit):
        assert heading < page.index(words, heading) < page.index("<main>"), words
    assert kept("checkpointing-switched-off")[1] in page


def test_failures_beyond_the_latest_are_said_to_have_no_page(
    held: Held, found: Summary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_files, "DETAILED", 30)
    (main, *_) = report.write_html(held, found, tmp_path / "report.html")
    assert "The latest 30 of 100 failures have pages" in main.read_text(encoding="utf-8")


def test_a_job_leads_to_its_log_where_folders_are_shown(tmp_path: Path) -> None:
    """For whoever ran it; a report that hides folders names none, and of a log that is gone there is no link."""
    store = cluster(60)
    log = tmp_path / "a log.txt"
    log.write_text("x")
    store.connection.execute("update jobs set logs = [case when hash(job) % 2 = 0 then $1 else $2 end]", [str(log), str(tmp_path / "gone")])
    for redact in (True, False):
        pages_written = report.write_html(store, summarize(store), tmp_path / f"report-{redact}.html", redact=redact)
        text = "".join(page.read_text(encoding="utf-8") for page in pages_written)
        assert (f'href="{log.resolve().as_uri()}"' in text) is not redact and "/gone" not in text


@for_each("form", ["text", "markdown", "html", "chat"])
def test_no_diff_of_a_file_holds_an_environment_variable(found: Summary, held: Held, form: str) -> None:
    """It stands beside the diff as a shell sets it."""
    groups = [group for group in found.groups if group.plan and any(variant.env and variant.edits for variant in group.plan.variants)]
    assert groups
    told = replace(found, groups=tuple(groups), total=len(groups))
    written = {
        "text": lambda: report.text(told, "en", View(top=30)),
        "markdown": lambda: report.markdown(told),
        "html": lambda: report.html(held, told),
        "chat": lambda: group_message(groups[0], "slack", "en").text,
    }[form]()
    assert "export PYTORCH_CUDA_ALLOC_CONF=" in written and not re.search(r"^(?:<[^>]*>)*\+ (?:export )?PYTORCH", written, re.MULTILINE)


def test_a_saving_of_a_group_is_an_upper_bound(held: Held, found: Summary, tmp_path: Path) -> None:
    """The jobs of a group differ: what one diagnosis saves is said as the most."""
    text = "".join(page.read_text(encoding="utf-8") for page in report.write_html(held, found, tmp_path / "report.html"))
    assert "saves up to" in text and not re.search(r"saves \d", text)
