"""Inputs made to cost time or memory, or to crash: bounded work, one clear sentence, and nothing that steers a terminal."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cases import CORPUS
from collected import for_each
from sweep import sample

from diagnose import disk_cache
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.budget.model.allocator import window
from diagnose.diagnosis import Diagnosis
from diagnose.errors import UserError
from diagnose.pipeline import explain
from diagnose.plan.patch import patching
from diagnose.plan.rules.remedy import Edit
from diagnose.render.formats import RENDERERS
from diagnose.render.parts.view import View
from diagnose.units import Size

LOG = (CORPUS / "llamafactory-6800" / "error.log").read_bytes()
CONFIG = CORPUS / "llamafactory-6800" / "qwen2vl_dpo.yaml"

TRL = b"from trl import SFTConfig\n"
SHELL = {
    "an array that doubles": b"a=(x y z)\n" + b"a+=(${a[@]})\n" * 60 + b"torchrun train.py ${a[@]}\n",
    "an array in every word": b"a=(" + b"x " * 10_000 + b")\ntorchrun train.py " + b"${a[@]}" * 20_000,
    "a long variable everywhere": b"x=" + b"a" * 40_000 + b"\n" + b"".join(b"y%d=$x\n" % i for i in range(20_000)),
    "a long variable in a here-document": b"x=" + b"a" * 40_000 + b"\nread -d '' Y <<EOF\n" + b"$x" * 100_000 + b"\nEOF\n",
    "many exports before many commands": b"".join(b"export A%d=1\n" % i for i in range(9_000)) + b"ls a\n" * 19_000,
}
PYTHON = {
    "too many keywords": TRL + b"a=SFTConfig(" + b",".join(b"k%d=1" % i for i in range(30_000)) + b")\n",
    "dicts that unfold without end": TRL
    + b"d0={'a':1,'b':2}\n"
    + b"".join(b"d%d={'a':d%d,'b':d%d}\n" % (i, i - 1, i - 1) for i in range(1, 40))
    + b"a=SFTConfig(x=d39)\n",
    "a dict that holds itself": TRL + b"d={'a':d}\na=SFTConfig(x=d)\n",
}
YAML = {
    "a long text under many aliases": b"a: &a " + b"y" * 1_000_000 + b"\n" + b"".join(b"b%d: *a\n" % i for i in range(9_000)),
    "merges of merges of nothing": b"a0: &a0 {}\n"
    + b"".join(b"a%d: &a%d {<<: [%s]}\n" % (i, i, b", ".join([b"*a%d" % (i - 1)] * 10)) for i in range(1, 14)),
}


def read(data: bytes) -> Diagnosis:
    """The diagnosis of a good log beside this config; it must not take long."""
    start = time.process_time()
    found = explain(LOG, configs=[ConfigSource("evil", data)])
    assert time.process_time() - start < 10
    assert found.verdict.status == "oom"
    return found


@for_each("data", sample([*SHELL.values(), *PYTHON.values(), *YAML.values()], 4))
def test_a_config_that_unfolds_to_more_than_any_config_is_refused(data: bytes) -> None:
    assert any(notice.code == "config.too_large" for notice in read(data).notices)


@for_each(
    "data",
    sample(
        [
            pytest.param(TRL + b"a=SFTConfig(max_length=0x" + b"f" * 100_000 + b")\n", id="a number of more digits than Python prints"),
            pytest.param(TRL + "a=SFTConfig(max_length='²'*3)\n".encode(), id="a digit that is no decimal"),
            pytest.param(TRL + b"import torch\n" + b"x.to('cuda')\n" * 10_000, id="many moves of nothing"),
            pytest.param(TRL + b"a=SFTConfig(" + ",".join(f"k{i}='é'" for i in range(9_000)).encode() + b")", id="one long line"),
            pytest.param(b"torchrun train.py " + b"${" * 100_000, id="braces that never close"),
            pytest.param(b"llamafactory-cli train a.yaml --x 1\n" * 1_500, id="many launches"),
            pytest.param(
                b"stage: sft\nfinetuning_type: full\n" + b"".join(b"cutoff_lenx%d: 1\n" % i for i in range(15_000)), id="unknown keys"
            ),
            pytest.param(
                b"export NNODES='\xc2\xb2'\ntorchrun --nproc_per_node 8 --nnodes '\xc2\xb2' train.py --bf16\n", id="nodes to the second"
            ),
        ],
        2,
    ),
)
def test_an_odd_config_is_read_in_bounded_time(data: bytes) -> None:
    read(data)


def test_an_echoed_command_that_unfolds_is_passed_over() -> None:
    line = b"+ x=" + b"a" * 3000 + b"; torchrun --nproc_per_node 8 train.py " + b"$x$x$x$x " * 100 + b"\n"
    assert explain(line * 10 + LOG).verdict.status == "oom"


@for_each("text", ["1e400", "nan", "inf", "1e30", "-1", "9" * 400])
@for_each("name", ["train.max_seq_len", "rollout.gpu_memory_utilization"])
def test_a_number_that_nothing_can_have_is_a_complaint(name: str, text: str) -> None:
    with pytest.raises(UserError):
        explain(LOG, set={name: text})


@for_each("name", sample(["train.max_seq_len", "train.micro_batch_size", "parallel.world", "lora.rank", "parallel.tensor"], 3))
@for_each("text", ["0", "1e9", "1e15"])
def test_an_absurd_number_is_answered_in_bounded_time(name: str, text: str) -> None:
    start = time.process_time()
    found = explain(LOG, configs=[CONFIG], set={name: text})
    for render in RENDERERS.values():
        render(found, "en", View(verbose=True, budget=True))
    assert time.process_time() - start < 5


@for_each("figure", ["1 TiB", "1024 TiB", "900 GiB", "0 GiB", "0.00 GiB", "4.6400000000000000000001 GiB", "9" * 40 + " GiB"])
def test_an_odd_figure_in_a_message(figure: str) -> None:
    start = time.process_time()
    explain(LOG.replace(b"4.64 GiB", figure.encode()), configs=[CONFIG])
    assert time.process_time() - start < 3


def test_a_window_of_a_figure_that_torch_prints_is_exact() -> None:
    """The search from either end of the rounding is short and still finds the whole window."""
    size = Size.printed("4.64", "GiB")
    assert size is not None
    low, high = window(size)
    assert low % 2**21 == 1 and high % 2**21 == 0 and size.low - 2**22 < low < high <= size.high


def test_a_role_that_does_not_train_has_no_backward_pass() -> None:
    """A log may name the reference model and print a traceback of a backward pass all the same."""
    log = (CORPUS / "openrlhf-392" / "error.log").read_bytes()
    found = explain(log, configs=sorted((CORPUS / "openrlhf-392").glob("*.sh")), set={"log.role": "reference", "log.phase": "backward"})
    assert found.verdict.status == "oom"


def test_json_cannot_steer_a_terminal() -> None:
    """C1 controls, DEL and turns of direction are escaped; the value stays."""
    log = LOG.replace(b"rank3", "rank3\x9b\x7f\u202e".encode(), 1)
    said = RENDERERS["json"](explain(log, configs=[ConfigSource("\x9b\x7f\u202e.yaml", CONFIG.read_bytes())]), "en", View())
    assert not set("\x9b\x7f\u202e") & set(said)
    assert json.loads(said)["inputs"][1]["name"] == "\x9b\x7f\u202e.yaml"


def test_removing_an_option_looks_only_at_its_line() -> None:
    script = "llamafactory-cli train \\\n  --stage dpo \\\n  --bf16 true \\\n  --cutoff_len 4096\n"
    found = explain(LOG, configs=[ConfigSource("a.sh", script.encode())])
    document = next(one for one in found.documents if one.name == "a.sh")
    changed = patching.apply(document, [Edit("a.sh", "--cutoff_len", "4096", None)])
    assert changed == script.replace(" \\\n  --cutoff_len 4096", "")


# -- the process


def command(words: str, **more: object) -> subprocess.CompletedProcess[str]:
    """oomdoctor in a shell, where descriptors can be closed."""
    line = f"exec {sys.executable} -m diagnose {words}"
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60, check=False, cwd=CORPUS.parent, **more)  # type: ignore[call-overload, no-any-return]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [f"explain {CONFIG.parent / 'error.log'}", "--version", "schema"])
def test_a_full_disk_is_one_sentence(words: str) -> None:
    done = command(f"{words} > /dev/full")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr


@for_each("closed", [">&-", ">&- 2>&-", "<&-", "2> /dev/full"])
def test_closed_streams_raise_nothing(closed: str) -> None:
    done = command(f"explain {CONFIG.parent / 'error.log'} gone.log {closed}")
    assert done.returncode == 0 and "Traceback" not in done.stderr + done.stdout


# -- what is kept


def test_what_is_kept_half_written_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a crash of the machine a file may have the right first line and not all of its content."""
    monkeypatch.setattr(disk_cache, "private_folder", lambda: tmp_path)
    assert disk_cache.recall("x", lambda: b"whole", [], tmp_path / "nowhere") == b"whole"
    kept = next(tmp_path.iterdir())
    kept.write_bytes(kept.read_bytes()[:-2])
    assert disk_cache.recall("x", lambda: b"built again", [], tmp_path / "nowhere") == b"built again"
    assert [each.name for each in tmp_path.iterdir()] == [kept.name]


def test_a_folder_above_that_anybody_may_write_into_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may rename our folder could put another in its place."""
    monkeypatch.setattr(disk_cache, "private_folder", disk_cache.private_folder.__wrapped__)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert disk_cache.private_folder() is not None
    tmp_path.chmod(0o777)
    assert disk_cache.private_folder() is None
    tmp_path.chmod(0o1777)  # sticky, as /tmp is
    assert disk_cache.private_folder() is not None
