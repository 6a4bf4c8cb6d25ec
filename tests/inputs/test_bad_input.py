"""Input that nobody should send and somebody will: one clear sentence, the contract's exit status, and the rest is still diagnosed."""

from __future__ import annotations

import io
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cases import CORPUS
from collected import for_each
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sweep import examples, sample

from diagnose.pipeline import explain
from diagnose.surfaces.cli import entry

GOOD = CORPUS / "llamafactory-6800"
LOG, CONFIG = GOOD / "error.log", GOOD / "qwen2vl_dpo.yaml"

#: Seconds that no input of a few megabytes may cost, on a machine that is busy with other things.
PATIENCE = 20.0


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    out: str
    err: str
    seconds: float

    @property
    def report(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.out)
        return data


def oomdoctor(*words: str | Path, stdin: bytes = b"") -> Answer:
    """The real command, between streams of its own (tests/inputs/test_hostile_input.py starts it as a process)."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    start = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(CORPUS.parent)
        patch.setattr(sys, "argv", ["oomdoctor", *map(str, words)])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as left:
            entry.main()
    seconds = time.monotonic() - start
    said, warned = (stream.buffer.getvalue().decode() for stream in (out, err))
    return Answer(int(left.value.code or 0), said, warned, seconds)


def explained(*words: str | Path, stdin: bytes = b"") -> Answer:
    return oomdoctor("explain", *words, "--format", "json", "--lang", "en", stdin=stdin)


def is_one_sentence(text: str) -> bool:
    return 0 < len(text.strip()) < 500 and len(text.strip().splitlines()) == 1


# -- logs


def test_no_such_file(tmp_path: Path) -> None:
    answer = explained(tmp_path / "gone.log")
    assert answer.status == 2 and answer.out == ""
    assert is_one_sentence(answer.err) and "gone.log" in answer.err


def test_no_such_file_in_chinese(tmp_path: Path) -> None:
    answer = oomdoctor("explain", tmp_path / "gone.log", "--lang", "zh")
    assert answer.status == 2 and is_one_sentence(answer.err)
    assert any("\u4e00" <= sign <= "\u9fff" for sign in answer.err), answer.err


def test_a_directory_without_a_log(tmp_path: Path) -> None:
    answer = explained(tmp_path)
    assert answer.status == 2 and is_one_sentence(answer.err) and tmp_path.name in answer.err


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    """Root reads everything, so a dangling link stands in for it: the system says no in either case."""
    (tmp_path / "link.log").symlink_to(tmp_path / "nowhere")
    answer = explained(tmp_path / "link.log")
    assert answer.status == 2 and is_one_sentence(answer.err)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\n\n\n", id="blank"),
        pytest.param(bytes(range(256)) * 2000, id="binary-garbage"),
        pytest.param(b"\x00" * 500_000, id="nul-filled"),
        pytest.param(b"\x7fELF" + bytes(i * 7919 % 251 for i in range(100_000)), id="executable"),
        pytest.param(b"step 1 loss 2.31\nstep 2 loss 2.29\nsaved to out\n", id="a-run-that-went-well"),
        pytest.param(b"\xff\xfe" + "loss 1.0\n".encode("utf-16-le") * 50, id="utf-16-without-a-failure"),
    ],
)
def test_a_log_without_a_memory_failure(tmp_path: Path, content: bytes) -> None:
    """Status none, said in one headline, exit status 1."""
    (tmp_path / "error.log").write_bytes(content)
    answer = explained(tmp_path / "error.log")
    assert answer.status == 1, answer.err
    verdict = answer.report["verdict"]
    assert verdict["status"] == "none" and verdict["event"] is None and is_one_sentence(verdict["headline"])


def test_an_utf_16_log_is_read(tmp_path: Path) -> None:
    """PowerShell redirects in UTF-16."""
    (tmp_path / "error.log").write_bytes(b"\xff\xfe" + LOG.read_text(encoding="utf-8").encode("utf-16-le"))
    answer = explained(tmp_path / "error.log")
    assert answer.status == 0 and answer.report["verdict"]["status"] == "oom"


@pytest.mark.parametrize("padding", sample([b"x", b"\x00", b" ", b"=", b"\r", b"9", b"CUDA out of memory. ", b"[", b'  File "a"'], 4))
def test_a_single_line_of_five_megabytes(tmp_path: Path, padding: bytes) -> None:
    """The message in the middle of it is found, in bounded time."""
    message = next(row for row in LOG.read_bytes().split(b"\n") if b"Tried to allocate" in row)
    filling = padding * (2_500_000 // len(padding))
    (tmp_path / "error.log").write_bytes(filling + b" " + message + b" " + filling)
    answer = explained(tmp_path / "error.log")
    assert answer.seconds < PATIENCE
    assert answer.status == 0 and answer.report["verdict"]["status"] == "oom"
    assert len(answer.out) < 2_000_000


def test_many_failures_in_bounded_time(tmp_path: Path) -> None:
    """A job that failed, restarted and failed again all night."""
    (tmp_path / "error.log").write_bytes(LOG.read_bytes() * 100)
    answer = explained(tmp_path / "error.log")
    assert answer.status == 0 and answer.seconds < PATIENCE


def test_an_unreadable_second_log_beside_a_readable_one(tmp_path: Path) -> None:
    """Diagnosed all the same; named in a notice and on standard error; with --strict it is an error."""
    answer = explained(LOG, tmp_path / "gone.log", "--config", CONFIG)
    assert answer.status == 0 and answer.report["verdict"]["status"] == "oom"
    assert "gone.log" in answer.err and is_one_sentence(answer.err)
    assert any("gone.log" in notice["message"] for notice in answer.report["notices"])
    assert explained(LOG, tmp_path / "gone.log", "--strict").status == 2


# -- configs

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))
BAD_CONFIGS = [
    pytest.param("train.yaml", b"stage: dpo\ncutoff_len: [4096\nbf16: true\n", id="not-yaml"),
    pytest.param("train.yaml", b"stage: dpo\n\tcutoff_len: 4096\n", id="tab"),
    pytest.param("ds.json", b'{"zero_optimization": {"stage": 3,}', id="not-json"),
    pytest.param("list.yaml", b"- just\n- a\n- list\n", id="no-mapping"),
    pytest.param("unknown.yaml", b"colour: blue\nwheels: 4\n", id="of-an-unknown-kind"),
    pytest.param("empty.yaml", b"", id="empty"),
    pytest.param("bomb.yaml", BOMB.encode(), id="yaml-bomb"),
    pytest.param("self.yaml", b"a: &a\n  b: *a\n", id="that-contains-itself"),
    pytest.param("deep.yaml", b"[" * 50_000, id="deeply-nested-yaml"),
    pytest.param("deep.json", b"[" * 50_000 + b"]" * 50_000, id="deeply-nested-json"),
    pytest.param("wide.yaml", b"a: " + b"x" * 5_000_000, id="five-megabytes-in-a-line"),
    pytest.param("nul.yaml", b"\x00" * 100_000, id="nul-filled"),
    pytest.param("binary.yaml", bytes(range(256)) * 100, id="binary"),
]


@pytest.mark.parametrize("name, content", BAD_CONFIGS)
def test_an_unusable_config(tmp_path: Path, name: str, content: bytes) -> None:
    """The log and the good config are diagnosed as if it were not there; one sentence names it."""
    (tmp_path / name).write_bytes(content)
    answer = explained(LOG, "--config", CONFIG, "--config", tmp_path / name)
    assert answer.status == 0 and answer.seconds < PATIENCE, answer.err
    assert answer.report["verdict"]["status"] == "oom"
    assert any(fact["name"] == "train.max_seq_len" and fact["value"] == 4096 for fact in answer.report["facts"])
    assert is_one_sentence(answer.err) and name in answer.err, answer.err
    assert any(name in notice["message"] for notice in answer.report["notices"]), answer.report["notices"]


def test_a_config_that_wants_to_run_code(tmp_path: Path) -> None:
    """A tag of YAML constructs nothing."""
    (tmp_path / "code.yaml").write_text(
        f'stage: !!python/object/apply:os.system ["touch {tmp_path}/owned"]\ncutoff_len: 4096\nfinetuning_type: full\n'
    )
    assert explained(LOG, "--config", tmp_path / "code.yaml").status == 0
    assert not (tmp_path / "owned").exists()


def test_a_config_that_does_not_exist(tmp_path: Path) -> None:
    answer = explained(LOG, "--config", tmp_path / "gone.yaml")
    assert answer.status == 0 and "gone.yaml" in answer.err and is_one_sentence(answer.err)


def test_a_yaml_error_names_its_place(tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text("stage: dpo\ncutoff_len: [4096\nbf16: true\n")
    answer = explained(LOG, "--config", tmp_path / "train.yaml")
    assert "line 3" in answer.err or "train.yaml:3" in answer.err, answer.err


def test_strict_makes_an_unusable_config_an_error(tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text("stage: [dpo\n")
    assert explained(LOG, "--config", tmp_path / "train.yaml", "--strict").status == 2


# -- options


@for_each(
    "words",
    [
        ("--set", "train.max_seq_length=4096"),
        ("--set", "train.max_seq_len=many"),
        ("--set", "nonsense"),
        ("--gpu", "Abacus-9000"),
        ("--model", "nobody/no-such-model"),
        ("--gpus", "0"),
        ("--format", "papyrus"),
        ("--no-such-option",),
    ],
)
def test_a_wrong_option(words: tuple[str, ...]) -> None:
    answer = explained(LOG, *words) if words[0] != "--format" else oomdoctor("explain", LOG, *words)
    assert answer.status == 2 and answer.out == "" and answer.err.strip()


def test_a_wrong_fact_name_suggests_the_right_one() -> None:
    assert "train.max_seq_len" in explained(LOG, "--set", "train.max_seq_length=4096").err


# -- nothing in a log raises


PIECES = [row + b"\n" for row in LOG.read_bytes().split(b"\n")]
WORDS = [
    b"CUDA out of memory. Tried to allocate ",
    b"20.00 MiB",
    b"99999999999999999999.99 GiB",
    b"-1.00 GiB",
    b". GPU ",
    b"\x00 has a total capacity of ",
    b" of which ",
    b" is free. ",
    b"Process 1 has 17179869184.00 GiB memory in use. ",
    b"Of the allocated memory ",
    b" is allocated by PyTorch, and ",
    b"Traceback (most recent call last):\n",
    b'  File "x.py", line 99999999999999999999, in f\n',
    b"[rank99999999999999]: ",
    b"\x1b[31m",
    b"\r",
    b"\n",
    b"{'loss': nan}",
    b"  0%|          | 0/0 [00:00<?, ?it/s]",
    "显存不足".encode(),
    b"\xff\xfe",
    b"trainable params: 1 || all params: 0 || trainable%: inf",
    b"torchrun --nproc_per_node 99999999999 --max_len -5 'unclosed",
    b"MA nan GB Max_MA 1e999 GB",
]


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.sampled_from(PIECES), st.binary(max_size=40)), max_size=30))
def test_no_log_raises(parts: list[bytes]) -> None:
    """Messages cut to pieces, absurd numbers, noise: always a diagnosis, in both languages; an archive that nothing opens is no log."""
    log = b"".join(parts)
    assume(not log.startswith((b"7z\xbc\xaf", b"Rar!", b"\x04\x22\x4d\x18", b"\x1f\x9d")))
    diagnosis = explain(log)
    for lang in ("en", "zh"):
        json.dumps(diagnosis.to_dict(lang))


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_damage_to_a_real_log_raises(data: st.DataObject) -> None:
    """A real log with a slice cut out, doubled or overwritten, together with its configs."""
    text = LOG.read_bytes()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 4000)))
    filling = data.draw(st.sampled_from([b"", b"\x00" * 50, text[start:end] * 2, b"\xff" * 9, b"e999", b"\n"]))
    explain(text[:start] + filling + text[end:], configs=[CONFIG]).to_dict("en")


VALUES = st.sampled_from(["-1", "0", "99999999999999999999", "1e400", ".nan", "true", "null", "[]", "{a: 1}", "'4096'", "auto", "~", "x"])


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_value_in_a_config_raises(data: st.DataObject) -> None:
    """Every key with a value that makes no sense: a notice or a fact, never an exception."""
    rows = CONFIG.read_text(encoding="utf-8").splitlines()
    for index, row in enumerate(rows):
        if ":" in row and not row.startswith("#") and data.draw(st.booleans()):
            rows[index] = f"{row.partition(':')[0]}: {data.draw(VALUES)}"
    explain(LOG, configs=["\n".join(rows)]).to_dict("en")
