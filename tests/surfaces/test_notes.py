"""What a user notes of an answer: the next one on the same job starts there, on every surface; nothing of the log is kept."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import cases
import httpx
import pytest
from cases import CORPUS
from collected import for_each
from forked import ENTRY, forked
from serving import SHORT, serving

from diagnose import check, explain, notebook
from diagnose.diagnosis import Diagnosis
from diagnose.render.formats import RENDERERS
from diagnose.render.parts.view import PLAIN

CASE = CORPUS / "openrlhf-392"
LOGS, SCRIPT = CASE / "error.log", CASE / "train_ppo.sh"


def oomdoctor(folder: Path, *words: object) -> Any:
    return forked(ENTRY, *map(str, words), cwd=folder, env={**os.environ, "XDG_DATA_HOME": str(folder), "LC_ALL": "C.UTF-8"})


def report(folder: Path, *words: object) -> dict[str, Any]:
    done = oomdoctor(folder, "explain", LOGS, "--config", SCRIPT, "--format", "json", *words)
    return dict(json.loads(done.stdout))


def noted(*notes: tuple[str, notebook.Result]) -> Diagnosis:
    job = explain(LOGS, configs=[SCRIPT]).job
    return explain(LOGS, configs=[SCRIPT], notes=[notebook.Note(job, remedy, result, "2026-11-23") for remedy, result in notes])


def test_what_failed_is_not_advised_again(tmp_path: Path) -> None:
    first = report(tmp_path)
    assert first["plan"]["steps"] == ["zero_offload_optimizer"]
    done = oomdoctor(tmp_path, "failed", first["job"], "zero_offload_optimizer")
    assert done.returncode == 0 and "starts with something else" in done.stdout
    second = report(tmp_path)
    assert second["job"] == first["job"] and "zero_offload_optimizer" not in second["plan"]["steps"]
    answer = oomdoctor(tmp_path, "explain", LOGS, "--config", SCRIPT).stdout
    assert re.search(r"You noted: optimizer offload failed \(\d{4}-\d\d-\d\d\)", answer) and len(answer.splitlines()) <= 24


def test_what_worked_comes_first_and_the_last_word_counts(tmp_path: Path) -> None:
    job = report(tmp_path)["job"]
    oomdoctor(tmp_path, "failed", job, "bf16_grad_accumulation", "lower_micro_batch")
    oomdoctor(tmp_path, "worked", job, "bf16-grad-accumulation")
    second = report(tmp_path)
    assert second["remedies"][0]["id"] == "bf16_grad_accumulation"
    assert {(fact["name"], fact["value"]) for fact in second["facts"] if fact["name"] in ("report.helped", "report.tried")} == {
        ("report.helped", "bf16_grad_accumulation"),
        ("report.tried", "lower_micro_batch"),
    }


def test_only_the_job_the_remedy_and_the_day_are_kept(tmp_path: Path) -> None:
    job = report(tmp_path)["job"]
    assert not list(tmp_path.rglob("*.jsonl"))  # an answer alone keeps nothing
    oomdoctor(tmp_path, "worked", job, "lower_micro_batch")
    (kept,) = tmp_path.rglob("*.jsonl")
    (line,) = kept.read_text().splitlines()
    assert json.loads(line) == {"job": job, "remedy": "lower_micro_batch", "result": "worked", "day": json.loads(line)["day"]}
    assert kept.stat().st_mode & 0o077 == 0 and kept.parent.stat().st_mode & 0o077 == 0


@for_each(
    "words, said",
    [
        (("worked", "7f0ffac", "lower_micro_batch"), "'7f0ffac' is no report id; it has eight characters"),
        (("failed", "7f0ffac2", "lower_micro_bach"), "no remedy is called 'lower_micro_bach'; did you mean lower_micro_batch?"),
        (("failed", "7f0ffac2", "weather"), "`oomdoctor rules list`"),
        (("failed", "7f0ffac2"), "REMEDY"),
    ],
)
def test_a_mistake_is_said(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = oomdoctor(tmp_path, *words)
    assert done.returncode == 2 and said in done.stderr and not list(tmp_path.rglob("*.jsonl"))


def test_a_job_keeps_its_number_while_settings_are_tried() -> None:
    job = explain(LOGS, configs=[SCRIPT]).job
    log = LOGS.read_text()
    smaller = log.replace("Tried to allocate 3.12 GiB", "Tried to allocate 1.56 GiB")
    assert smaller != log
    assert explain(smaller, configs=[SCRIPT], set={"train.micro_batch_size": "2"}).job == job
    assert explain(LOGS, configs=[SCRIPT], model="Qwen/Qwen2.5-0.5B").job != job


def test_without_a_model_the_message_is_the_job() -> None:
    message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {} GiB. GPU 0 has a total capacity of 79.15 GiB"
    one, same, other = (explain(message.format(size)).job for size in ("2.00", "2.00", "4.00"))
    assert one == same != other


def test_a_check_starts_from_notes_too() -> None:
    options: dict[str, Any] = {"gpu": "A100-40GB", "gpus": 8}
    first = check([SCRIPT], **options)
    remedy = first.outcome.remedies[0].id
    second = check([SCRIPT], **options, notes=[notebook.Note(first.job, remedy, "failed", "2026-11-23")])
    assert second.outcome.remedies[0].id != remedy


def test_notes_of_strangers_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    kept = notebook.write("7f0ffac2", ["lower_micro_batch"], "failed")
    assert kept is not None and len(notebook.read()) == 1
    with kept.open("a") as out:
        out.write('no note\n{"job": "7f0ffac2"}\n[1]\n{"job": "x", "remedy": "a", "result": "b", "day": "c"}\n')
    assert len(notebook.read()) == 1
    kept.parent.chmod(0o777)
    assert notebook.read() == [] and notebook.write("7f0ffac2", ["lower_micro_batch"], "failed") is None


def test_both_languages_say_what_was_noted() -> None:
    (notice,) = [each.message for each in noted(("zero_offload_optimizer", "failed"), ("lora", "worked")).notices if each.code == "noted"]
    assert notice.en == "You noted: optimizer offload failed (2026-11-23), LoRA worked (2026-11-23)"
    assert notice.zh == "你记下过：优化器卸载无效（2026-11-23），LoRA有效（2026-11-23）"


def test_the_answer_names_the_command_where_somebody_may_come_back() -> None:
    diagnosis = explain(LOGS, configs=[SCRIPT])
    told = f"oomdoctor worked {diagnosis.job} zero_offload_optimizer"
    assert told in RENDERERS["text"](diagnosis, "en", PLAIN._replace(verbose=True))
    assert told in RENDERERS["html"](diagnosis, "en", PLAIN)
    roomy = cases.diagnosed("shared-memory-of-the-container")
    assert "oomdoctor worked" in RENDERERS["text"](roomy, "en", PLAIN._replace(reader=True))
    assert "oomdoctor worked" not in RENDERERS["text"](roomy, "en", PLAIN)


def test_a_page_has_buttons_and_goes_on_from_there(tmp_path: Path) -> None:
    with serving(env={"XDG_DATA_HOME": str(tmp_path)}) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        page = client.post("/", files={"log": (None, SHORT)}).text
        (job,), remedies = set(re.findall(r'name="job" value="(\w+)"', page)), re.findall(r'name="failed" value="(\w+)"', page)
        assert 'form="again"' in page  # what was pasted is sent again with it
        remedy = remedies[0]
        again = client.post("/", files={"log": (None, SHORT), "job": (None, job), "failed": (None, remedy)}).text
        assert "You noted: " in again and re.findall(r'name="failed" value="(\w+)"', again)[0] != remedy
        alone = client.post("/", files={"job": (None, job), "worked": (None, remedy)}).text
        assert 'role="status"' in alone and "Noted." in alone
        assert client.post("/", files={"job": (None, job), "worked": (None, "<script>")}).status_code == 422
        (kept,) = tmp_path.rglob("*.jsonl")
        lines = kept.read_text()
        client.post("/", files={"job": (None, job), "worked": (None, remedy)}, headers={"sec-fetch-site": "cross-site"})
        assert kept.read_text() == lines


def test_triage_counts_what_was_tried(tmp_path: Path) -> None:
    job = report(tmp_path)["job"]
    oomdoctor(tmp_path, "failed", job, "zero_offload_optimizer")
    done = oomdoctor(tmp_path, "triage", CASE)
    assert "tried: optimizer offload (worked 0, failed 1)" in done.stdout
    told = json.loads(oomdoctor(tmp_path, "triage", CASE, "--format", "json").stdout)
    assert told["groups"][0]["tried"] == [{"remedy": "zero_offload_optimizer", "worked": 0, "failed": 1}]


def test_triage_counts_what_a_page_says_was_tried(tmp_path: Path) -> None:
    page = CORPUS / "the-message-within-a-sentence" / "page.md"
    (tmp_path / "error.log").write_text(page.read_text())
    assert "smaller micro batch (worked 0, failed 1)" in " ".join(oomdoctor(tmp_path, "triage", "error.log").stdout.split())


def test_the_file_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The older half goes; each line that stays is a whole note, and the last one counts."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for _ in range(9):
        kept = notebook.write("0123abcd", ["zero3"] * 500, "failed")
    assert kept is not None and notebook.write("0123abcd", ["zero3"], "worked") == kept
    notes = notebook.read()
    assert kept.stat().st_size < notebook.MOST and len(notes) == kept.read_bytes().count(b"\n") and notes[-1].result == "worked"
