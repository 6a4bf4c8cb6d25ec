"""Inputs made to cost time or memory, or to crash: bounded work, one clear sentence, and nothing that steers a terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from cases import CORPUS
from collected import for_each
from pace import within
from sweep import SWEEP, sample, share

from diagnose import disk_cache, rule_files
from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.adapters.schema import lexicon
from diagnose.budget.model.block_rounding import window
from diagnose.diagnosis import Diagnosis
from diagnose.errors import UserError
from diagnose.inputs.caller_arguments import model_facts
from diagnose.parse import log_reader
from diagnose.pipeline import explain
from diagnose.plan.patch import patching
from diagnose.plan.remedies.remedy import Edit
from diagnose.render.formats import RENDERERS
from diagnose.render.parts.view import View
from diagnose.scan import log_scan, source
from diagnose.units import Size, finite_number, whole_number

LOG = (CORPUS / "llamafactory-6800" / "error.log").read_bytes()
CONFIG = CORPUS / "llamafactory-6800" / "qwen2vl_dpo.yaml"

MESSAGE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB. GPU 3 has a total capacity of 31.74 GiB.\n"
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
    with within(10):
        found = explain(LOG, configs=[ConfigSource("evil", data)])
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
            pytest.param(
                b"a0=$a-1$a-1\n" + b"".join(b"a%d=$a%d$a%d\n" % (i, i - 1, i - 1) for i in range(1, 40)) + b"torchrun train.py $a39\n",
                id="variables that double",
            ),
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


CAPPED = {
    "programs": (b"".join(b"torchrun --nproc_per_node 8 train%d.py --bf16 True\n" % i for i in range(1_200)), "config.too_many_programs"),
    "misspelt keys": (
        b"python -m verl.trainer.main_ppo data.train_batch_size=1 "
        + b" ".join(b"actor_rollout_ref.actor.ppo_mini_batch_siz%d=1" % i for i in range(3_500)),
        "config.unknown_keys",
    ),
    "options": (b"torchrun --nproc_per_node 8 src/train.py --stage sft --bf16 " + b"--a " * 5_000, "config.too_many_options"),
}


@for_each("name", CAPPED)
def test_what_is_left_out_of_a_config_is_said(name: str) -> None:
    data, code = CAPPED[name]
    assert code in {notice.code for notice in read(data).notices}


#: Large configs of things that are looked up one by one.
LARGE = {
    "keys.yaml": "stage: sft\nfinetuning_type: full\ncutoff_len: 4096\n" + "".join(f"k{at}: {at}\n" for at in range(share(6_000))),
    "blocks.yaml": "stage: sft\nfinetuning_type: full\n" + "".join(f"k{at}:\n  a: {{b: [1, {{c: {at}}}]}}\n" for at in range(share(2_500))),
    "ds.json": '{"train_micro_batch_size_per_gpu": 4, '
    + "".join(f'"k{at}": {{"stage": {at}}},\n' for at in range(share(3_500)))
    + '"z": 1}',
    "loops.py": "import torch\nlosses = []\n"
    + "".join(f"for x{at} in loader:\n    loss = model(x{at}).loss\n    losses.append(loss)\n" for at in range(share(1_000))),
    "loads.py": "import torch\n"
    + 'from transformers import AutoModelForCausalLM\nmodel = AutoModelForCausalLM.from_pretrained("gpt2")\n' * share(1_000)
    + "model.train()\n",
    "args.sh": "ARGS=(\n   --tensor-model-parallel-size 2\n   --micro-batch-size 8\n"
    + "   --recompute-num-layers 1\n\n" * share(10_000)
    + ")\ntorchrun --nproc_per_node 8 pretrain_gpt.py ${ARGS[@]} --num-layers 32 --hidden-size 4096 --seq-length 4096\n",
}


@for_each("name", LARGE)
def test_a_config_of_thousands_of_keys(name: str) -> None:
    with within(5 if SWEEP else 2):
        explain(MESSAGE, configs=[ConfigSource(name, LARGE[name].encode())])


def test_remarks_of_one_kind_are_counted_beyond_a_hundred() -> None:
    notices = explain(LOG, configs=[ConfigSource("a.yaml", b"stage: sft\n" * 300)]).notices
    assert sum(notice.code == "config.duplicate_key" for notice in notices) == 101
    assert "199" in notices[-1].message.en and "199" in notices[-1].message.zh


def test_a_script_with_the_line_ends_of_old_macs() -> None:
    """Python's parser counts them as lines."""
    script = TRL + "x = 'é'\na = SFTConfig(\n  max_length=4096,\n  bf16=True,\n)\n".encode()
    values = {fact.name: fact.value for fact in read(script.replace(b"\n", b"\r")).facts}
    assert values["train.max_seq_len"] == 4096


#: A megabyte of what a page is made of (an eighth of it outside a sweep); a page with it takes 0.3 s on a machine that does nothing else.
PAGES = {
    "fences": "```yaml\nstage: sft\ncutoff_len: 4096\n```\n\n" * share(24_000),
    "quotes and folds": "".join("> " * (depth % 400) + "<details>\n" for depth in range(share(2_500))),
    "a line": "My `python train.py` and " * share(42_000),
    "headings": "### model\nkey: 1\n\n" * share(55_000),
    "a table": "| a | b: 1 | c.yaml | --d |\n|---|---|\n" * share(28_000),
    "tags": "<div><pre>\n<code>x: 1</code>\n</div>\n" * share(28_000),
    "entities": "<pre>\n" + "&lt;a&gt;&quot;: &#39;\n" * share(55_000),
    "nothing closed": "```\n" + "<details>\n<pre>\n> ```\n`a\n" * share(40_000),
    "blank lines": "<pre>\n" * share(170_000),
    "long names before messages": "".join(f"{'a.' * 95}: CUDA out of memory. Tried to allocate {at} GiB.\n" for at in range(share(4_000))),
    "frames without heads": "".join(
        f'  File "/a/b{at}.py", line {at}, in f{at}\n    x = y{at}\n' * 2
        + f"RuntimeError: CUDA out of memory. Tried to allocate {at} GiB.\n"
        for at in range(share(5_000))
    ),
    "failures without frames": "".join(
        f"2020-10-22 02:48:58 [3]   (1) Resource exhausted: OOM when allocating tensor with shape[{at},9]\n" for at in range(share(10_000))
    ),
}


@for_each("name", PAGES)
def test_a_page_made_to_cost_time(name: str) -> None:
    """Before and behind the message."""
    for page in sample((f"# My page\n\n{PAGES[name]}\n{MESSAGE}", f"# My page\n\n{MESSAGE}{PAGES[name]}"), 1):
        with within(3 if SWEEP else 1):
            assert explain(page).verdict.status == "oom"


def test_a_block_far_down_a_page_is_read_in_bounded_time() -> None:
    """It keeps its line by the blank lines before it; what looks like a script and does not parse is no reason to try them all."""
    page = "My script:\n" + "\n" * 4_000 + "```\nx = (\nimport torch\n```\n\n" + MESSAGE
    with within(2):
        assert explain(page).verdict.status == "oom"


def test_a_log_full_of_messages_is_searched_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its beginning and its end are, and what was not is said: a caught failure is printed on every step of a week."""
    monkeypatch.setattr(log_scan, "MESSAGES", 1_000)
    line = b"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    found = explain(line * 100_000 + LOG)
    assert "too_many_messages" in {notice.code for notice in found.notices}
    assert any(event.requested is not None and event.requested.text == "4.64 GiB" for event in found.events)


def test_what_every_attempt_says_is_one_notice() -> None:
    line = b"CUDA out of memory. Tried to allocate 17179869184.00 GiB. GPU 0 has a total capacity of 31.74 GiB of which 1.41 GiB is free.\n"
    codes = [notice.code for notice in explain(b"".join(line + b"epoch %d restarting\n" % i for i in range(50))).notices]
    assert codes.count("request_overflow") == 1


#: What may stand where a message has a number, and Python's own readers of numbers raise or take long.
NUMBERS = ["0..", "1e999", "1e-999999999", "9" * 5000, "٣٢", "²", "nan", "inf", "-1", "", "1.2.3", ".", ",", "1_0"]


@for_each("number", sample(NUMBERS, 5))
def test_no_number_raises(number: str) -> None:
    """In a log, and round the words of every message."""
    words = [text for texts in rule_files.table("messages")["messages"].values() for text in texts]
    made = "\n".join(f"{number} GB {text}{number} is needed, ({number} / {number}) GiB" for text in words)
    for log in (re.sub(rb"\d[\d.,]*", number.encode(), LOG), made.encode(), f"{number} GB KV cache isneeded".encode()):
        log_reader.read_logs([log_scan.scan(source.Source.text(log))])


@for_each("number", NUMBERS)
def test_no_reader_of_numbers_raises(number: str) -> None:
    Size.printed(number, "GiB")
    assert whole_number(number) is None or number == "1_0"
    assert finite_number(number) is None or number in ("1e-999999999", "-1", "1_0")


def test_a_number_is_read_with_commas_and_as_bytes() -> None:
    assert whole_number(b"12,345") == 12345 and finite_number("0.9") == 0.9


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_never_ends_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe without a writer and a device, as a log, as a config and as a model."""
    monkeypatch.setattr(source, "PATIENCE", 0.1)
    pipe = tmp_path / "config.json"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        for open_it in (lambda path: explain(path), ConfigSource.file, model_facts):
            with pytest.raises(UserError):
                open_it(path)


def test_an_echoed_command_that_unfolds_is_passed_over() -> None:
    line = b"+ x=" + b"a" * 3000 + b"; torchrun --nproc_per_node 8 train.py " + b"$x$x$x$x " * 100 + b"\n"
    assert explain(line * 10 + LOG).verdict.status == "oom"


@for_each("text", ["1e400", "nan", "inf", "1e30", "-1", "9" * 400])
@for_each("name", ["train.max_seq_len", "rollout.gpu_memory_utilization"])
def test_a_number_that_nothing_can_have_is_a_complaint(name: str, text: str) -> None:
    with pytest.raises(UserError):
        explain(LOG, set={name: text})


@for_each("text", ["", "a|b|c", "a|2x|4", "a|" + "9" * 400 + "|4"])
def test_a_fact_of_our_own_that_a_caller_gives_otherwise_says_nothing(text: str) -> None:
    for name in ("code.tensor", "report.figures"):
        with suppress(UserError):
            explain(LOG, set={name: text})


def test_a_key_of_ten_thousand_blocks_takes_little_memory() -> None:
    """Each block held by its whole name is the square of them."""
    leaves = [Leaf(".".join("a" * 10_000), "1", "1", 0, 1, 1, 1)]
    lexicon.guesses(leaves)  # what it keeps of its rules is no part of it
    tracemalloc.start()
    lexicon.guesses(leaves)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


@for_each(
    "name, text",
    [("run.task", "astrology"), ("model.quantization", "x" + ".a" * 9), ("model.path", "a/" * 4_000), ("model.quantization", "a" * 50_000)],
)
def test_a_word_or_text_that_nothing_can_have_is_a_complaint(name: str, text: str) -> None:
    """In a sentence that does not repeat it at length."""
    with pytest.raises(UserError) as refused:
        explain(LOG, set={name: text})
    assert name in str(refused.value) and len(str(refused.value)) < 2_000


@for_each("name", sample(["train.max_seq_len", "train.micro_batch_size", "parallel.world", "lora.rank", "parallel.tensor"], 3))
@for_each("text", ["0", "1e9", "1e15"])
def test_an_absurd_number_is_answered_in_bounded_time(name: str, text: str) -> None:
    with within(5):
        found = explain(LOG, configs=[CONFIG], set={name: text})
        for render in RENDERERS.values():
            render(found, "en", View(verbose=True, budget=True))


@for_each("figure", ["1 TiB", "1024 TiB", "900 GiB", "0 GiB", "0.00 GiB", "4.6400000000000000000001 GiB", "9" * 40 + " GiB"])
def test_an_odd_figure_in_a_message(figure: str) -> None:
    with within(3):
        explain(LOG.replace(b"4.64 GiB", figure.encode()), configs=[CONFIG])


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
