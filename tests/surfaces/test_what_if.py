"""`oomdoctor what-if` and `oomdoctor open`, and the session that the page in a browser asks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cases import CORPUS, diagnosed
from checkout import ROOT
from collected import for_each
from forked import ENTRY, forked

from diagnose.phrases import Lang
from diagnose.render.parts import turned_view
from diagnose.render.text import turned_text
from diagnose.surfaces.cli.entry import run
from diagnose.surfaces.playground.session import Session
from diagnose.surfaces.what_if.turned_roles import bench, values

NAME = "llamafactory-6800"
CASE = CORPUS / NAME
CONFIGS = ("--config", str(CASE / "qwen2vl_dpo.yaml"), "--config", str(CASE / "ds_z3_config.json"))


def called(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command."""
    monkeypatch.setattr(sys, "argv", ["oomdoctor", *words])
    with pytest.raises(SystemExit) as ended:
        run()
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_the_planned_change_fits_as_the_plan_says(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What the plan predicts is what turning its knobs gives."""
    plan = diagnosed(NAME).outcome.plan
    assert plan is not None and plan.predicted_peak is not None
    words = ["what-if", str(CASE / "error.log"), *CONFIGS, "train.max_seq_len=1536", "alloc.expandable_segments=true", "--format", "json"]
    status, out, _ = called(monkeypatch, capsys, *words)
    data = json.loads(out)
    assert status == 0 and data["after"]["fits"] == "yes" and data["before"]["fits"] == "no"
    assert data["after"]["need"] == plan.predicted_peak.bytes < data["after"]["usable"] < data["before"]["need"]
    assert sum(part["after"] - part["before"] for part in data["parts"]) == data["after"]["need"] - data["before"]["need"]


@for_each("lang, said", [("en", "Micro batch size is 1 already."), ("zh", "micro batch 大小本来就是 1。")])
def test_what_is_so_already_is_said(lang: Lang, said: str) -> None:
    """And not drawn as if it had been turned."""
    turned = bench(diagnosed(NAME)).turn(values({"train.micro_batch_size": "1"}))
    assert said in turned_view.remarks(turned, lang)
    assert turned_view.remarks(bench(diagnosed(NAME)).turn(values({"train.max_seq_len": "2048"})), lang)[:1] != [said]


@for_each("lang, said", [("en", "LoRA rank changes nothing in this estimate."), ("zh", "LoRA 秩不影响这里的估算。")])
def test_what_moves_nothing_is_said(lang: Lang, said: str) -> None:
    """A rank where nothing is an adapter, beside a length that does move something; the differences are in one unit and add up."""
    turned = bench(diagnosed(NAME)).turn(values({"train.max_seq_len": "2048", "lora.rank": "16"}))
    assert said in turned_view.remarks(turned, lang) and turned.idle == ("lora.rank",)
    text = turned_text.render(turned, lang)
    table = re.findall(r"→ +[\d.]+ GiB +([−+][\d.]+) (\w+)", text)
    *parts, total = [float(figure.replace("−", "-")) for figure, unit in table if unit == "GiB"]
    assert len(table) == 3 and len(parts) == 2 and abs(sum(parts) - total) < 0.02


def test_the_refused_request_is_a_part_of_the_difference() -> None:
    """What is needed counts it, so that the parts add up to the sum; not where the ledger has the request among its terms."""
    for name, changes, counts_request in (
        ("an-actor-on-two-cards", {"train.micro_batch_size": "1"}, True),
        ("openrlhf-964", {"version.openrlhf": "0.7.1"}, False),
    ):
        turned = bench(diagnosed(name)).turn(values(changes))
        rows = turned_view.differences(turned)
        before, after = turned.before.need, turned.after.need
        assert before is not None and after is not None and ("request" in {row.kind for row in rows}) is counts_request
        assert sum(row.after - row.before for row in rows) == after.bytes - before.bytes


def test_another_card_is_a_knob(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A larger card has more that torch can use, what the job needs stays; an unknown one is answered with the nearest."""
    case = CORPUS / "openrlhf-392"
    words = ["what-if", str(case / "error.log"), "--config", str(case / "train_ppo.sh"), "--format", "json"]
    _, out, _ = called(monkeypatch, capsys, *words, "hardware.gpu=H200-141GB")
    data = json.loads(out)
    assert (data["before"]["fits"], data["after"]["fits"]) == ("no", "yes")
    assert data["after"]["need"] == data["before"]["need"] and data["after"]["usable"] > data["before"]["usable"] + 50 * 2**30
    status, _, err = called(monkeypatch, capsys, *words, "hardware.gpu=H200-14GB")
    assert status == 2 and "H200-141GB" in err


@for_each(
    "lang, words", [("en", ("Before: does not fit", "After: does not fit", "logits")), ("zh", ("修改前：放不下", "修改后：放不下", "合计"))]
)
def test_two_bars_and_what_differs(lang: Lang, words: tuple[str, ...]) -> None:
    """The longer bar fills the line; the edge of the card stands at the same column in both."""
    words_ = ("what-if", str(CASE / "error.log"), *CONFIGS, "train.micro_batch_size=2", "--lang", lang)
    done = forked(ENTRY, *words_, cwd=ROOT, env={**os.environ, "COLUMNS": "80", "LC_ALL": "C.UTF-8"})
    assert done.returncode == 1 and all(word in done.stdout for word in words), done.stdout + done.stderr
    bars = [line for line in done.stdout.splitlines() if line.startswith("  [")]
    assert len(bars) == 2 and bars[0].index("]") == bars[1].index("]") and len(bars[0]) < len(bars[1]) <= 80


@for_each(
    "words, said",
    [
        (("what-if", str(CASE / "error.log")), "KNOB=VALUE"),
        (("what-if", str(CASE / "error.log"), "train.foo=1"), "train.foo"),
        (("what-if", str(CASE / "error.log"), "train.micro_batch_size=many"), "many"),
        (("what-if", "train.micro_batch_size=1"), "--config FILE"),
        (("open",), "log"),
    ],
)
def test_a_mistake_is_a_sentence(words: tuple[str, ...], said: str) -> None:
    done = forked(ENTRY, *words, cwd=ROOT)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_open_writes_the_page_and_opens_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A telling name in a private folder, or the name that is asked for; where no browser starts, the name is said."""
    opened: list[str] = []

    def taken(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr("webbrowser.open", taken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    status, out, _ = called(monkeypatch, capsys, "open", str(CASE / "error.log"), *CONFIGS, "--lang", "en")
    page = next(tmp_path.glob("oomdoctor-*/oomdoctor-oom-logits.html"))
    assert status == 0 and str(page) in out and opened == [page.as_uri()]
    assert page.parent.stat().st_mode & 0o077 == 0 and "4.64 GiB" in page.read_text()
    monkeypatch.setattr("webbrowser.open", lambda _: False)
    status, _, err = called(monkeypatch, capsys, "open", *CONFIGS, "--gpu", "A100-80GB", "--out", str(tmp_path / "mine.html"))
    assert status in (0, 1, 4) and "mine.html" in err and (tmp_path / "mine.html").read_text().startswith("<!doctype html>")


def asked(session: Session, ask: str, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(session.ask(json.dumps({"ask": ask, "lang": "en", **more})))
    return answer


def test_a_session_sorts_what_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Configs among the files are known by name and content; controls, map and patch follow the changes; a mistake is a sentence."""
    monkeypatch.chdir(CASE)
    session = Session()
    assert "wrong" in asked(session, "show") and "wrong" in asked(session, "open", folder=str(CASE), files=[])
    names = ("error.log", "qwen2vl_dpo.yaml", "ds_z3_config.json")
    answer = asked(session, "open", folder=str(CASE), files=[{"name": name, "kind": "any"} for name in names])
    assert [source["kind"] for source in json.loads(answer["json"])["inputs"]] == ["log", "llamafactory", "deepspeed"]
    assert answer["counted"] and answer["planned"] == ["lower_seq_len", "expandable_segments"] and "<main>" not in answer["body"]
    assert asked(session, "save", form="page")["text"].startswith("<!doctype html>")
    assert "4.64 GiB" in asked(session, "save", form="markdown")["text"]
    more = asked(session, "more", changes={"train.max_seq_len": 1024, "train.finetuning": "lora"})
    assert 'id="knob-lora.rank"' in more["controls"] and "+finetuning_type: lora" in more["patch"] and "+cutoff_len: 1024" in more["patch"]
    assert 'id="knob-lora.rank"' not in asked(session, "more", changes={})["controls"]
    assert asked(session, "turn", changes={"train.max_seq_len": 1024})["data"]["after"]["fits"] == "yes"
    assert "wrong" in asked(session, "turn", changes={"train.optimizer": "hammer"})


def test_a_browser_needs_no_more_than_it_has() -> None:
    """What the session imports does without compiled code, processes, sockets, and what the site's engine leaves out."""
    code = (
        "import sys, yaml\n"
        "for name in ('CSafeLoader', 'CBaseLoader'): delattr(yaml, name)\n"
        "missing = ('pydantic', 'typer', 'lark', 'multiprocessing', 'yaml._yaml', 'diagnose.cluster', 'diagnose.vet')\n"
        "sys.modules.update(dict.fromkeys(missing))\n"
        "import json, pathlib\n"
        "from diagnose.surfaces.playground.session import Session\n"
        f"files = [{{'name': name, 'kind': 'any'}} for name in ('error.log', 'qwen2vl_dpo.yaml', 'ds_z3_config.json')]\n"
        f"session = Session(); answer = json.loads(session.ask(json.dumps({{'ask': 'open', 'folder': {str(CASE)!r}, 'files': files}})))\n"
        "session.ask(json.dumps({'ask': 'more', 'changes': {'train.max_seq_len': 512}}))\n"
        "assert answer['status'] == 'oom', answer\n"
        "print(*sorted({'subprocess', 'socket', 'ssl', 'sqlite3', 'duckdb'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "ssl" not in done.stdout and "sqlite3" not in done.stdout and "duckdb" not in done.stdout
