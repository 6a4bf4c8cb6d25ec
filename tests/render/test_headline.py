"""The first sentence of an answer: who failed, what was asked for, and whether the job died of it."""

from __future__ import annotations

import re
from pathlib import Path

import cases
import pytest
from collected import for_each

from diagnose.phrases import Lang
from diagnose.pipeline import explain
from diagnose.render.text.one_screen import render

ASKED = "CUDA out of memory. Tried to allocate 1.00 GiB. GPU {gpu} has a total capacity of 79.25 GiB of which {free} GiB is free. "
HELD = "Of the allocated memory 35.11 GiB is allocated by PyTorch, and 820.11 MiB is reserved by PyTorch but unallocated."
CAPPED = "Including non-PyTorch memory, this process has 36.40 GiB memory in use. 36.00 GiB allowed; "
PLAIN = "Including non-PyTorch memory, this process has 79.00 GiB memory in use. "
WARNED = "/x/fsdp/_state_dict_utils.py:312: UserWarning: Failed to clone() tensor with name model.norm on rank 3. Error: "
KILLED = "Out of memory: Killed process 871263 (pt_main_thread) total-vm:99kB, anon-rss:66871236kB, file-rss:1kB, shmem-rss:0kB, UID:0\n"
IN_CGROUP = KILLED.replace("Out of memory", "Memory cgroup out of memory")
OOMKILLED = "    Limits:\n      memory:  64Gi\n    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n"
NO_BLOCKS = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"

CUPY = (
    "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so far: 16,106,127,360 bytes, "
    "limit set to: 17,179,869,184 bytes).\n"
)
RESERVE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.28 GiB. GPU 0 has a total capacity of 79.14 GiB of which 38.40 GiB is "
    "free. The allocation exceeds the expandable-segment reserve of 7.91 GiB for this stream\n"
)


def torch(gpu: int = 1, free: str = "0.10", middle: str = PLAIN) -> str:
    return f"{ASKED.format(gpu=gpu, free=free)}{middle}{HELD}\n"


RANKS = "".join(f"[rank{rank}]: torch.OutOfMemoryError: {torch(rank)}" for rank in range(3))


@for_each(
    "text, english, chinese",
    [
        (f"torch.OutOfMemoryError: {torch()}", "GPU 1 ran out of memory: 1.00 GiB requested, 102.40 MiB free.", "GPU 1 显存不足"),
        (WARNED + torch(), "free, and the run went on after it.", "但任务并未因此终止"),
        (f"torch.OutOfMemoryError: {torch(free='42.00', middle=CAPPED)}", "though the process may take 36.00 GiB", "最多使用 36.00 GiB"),
        (RANKS, "GPUs 0, 1 and 2 ran out of memory", "GPU 0、1 和 2 显存不足"),
        (
            CUPY,
            "8.00 GiB (8,589,934,592 bytes) requested (one array of CuPy), though the process may take 16.00 GiB",
            "申请 8.00 GiB（8,589,934,592 bytes）（一个 CuPy 数组）",
        ),
        (RESERVE, "one request is larger than the addresses that an expandable segment reserves", "单次申请大于一个可扩展段"),
        (KILLED, "the process that was killed held 63.77 GiB.", "主机内存不足"),
        (OOMKILLED, "ran out of host RAM, under a limit of 64.00 GiB.", "（内存上限 64.00 GiB）"),
        (NO_BLOCKS, "The job ran out of memory in KV cache set-up.", "该任务在建立 KV 缓存时显存不足。"),
    ],
)
def test_what_it_says(text: str, english: str, chinese: str) -> None:
    """Who, how many alike, what limit: a cap of the process, the container's, and that a survived failure is no death."""
    headline = explain(text.replace("0.10 GiB", "102.40 MiB")).verdict.headline
    assert english in headline.en
    assert chinese in headline.zh


def test_a_survived_failure_does_not_claim_a_death() -> None:
    """The banner, too, says that the run went on."""
    diagnosis = explain(WARNED + torch())
    assert render(diagnosis, "en").splitlines()[0] == "OUT OF MEMORY, BUT THE RUN WENT ON (text:1)"
    assert render(explain(torch()), "en").splitlines()[0] == "OUT OF MEMORY (text:1)"


@pytest.mark.parametrize(("text", "presumed"), [(KILLED, True), (IN_CGROUP, False), (OOMKILLED, False)])
def test_whose_memory_ran_out_is_presumed_of_a_node_only(text: str, presumed: bool) -> None:
    """Under a limit of the job itself nobody else can have filled it."""
    diagnosis = explain(text)
    (cause,) = diagnosis.judgement.causes
    assert (cause.cause, cause.outcome) == ("host_ram", "likely" if presumed else "fires")
    assert (cause.assumes is not None and "not another one on the node" in cause.assumes.en) is presumed


def test_which_attempt_is_diagnosed_is_told_without_being_asked() -> None:
    """Of a file with two runs the reader must know which one the answer is about."""
    start = "W0101 torch/distributed/run.py:793] Setting OMP_NUM_THREADS environment variable for each process to be 1\n"
    answer = render(explain(f"{start}{torch()}{start}{torch(gpu=2)}"), "en")
    assert "the log holds 2 attempts that failed; this is attempt 2" in " ".join(answer.split())


def test_settings_without_a_failure_can_still_be_checked() -> None:
    """A question that holds a command and no message: what can be done with it is said, and only then."""
    command = "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 4"
    asked = explain(f"# It does not start\n```\n{command}\n```\nwhy?\n").verdict.headline
    assert "oomdoctor check" in asked.en and "oomdoctor check" in asked.zh
    assert "oomdoctor check" not in explain("epoch 1 done\n").verdict.headline.en


@pytest.mark.parametrize(("lang", "said"), [("en", "Nothing here shows what filled the memory"), ("zh", "日志看不出占满的是什么")])
def test_what_is_only_also_true_explains_nothing(lang: Lang, said: str) -> None:
    """Idle pieces beside a full card do not lead: the headline says that nothing shows the cause, the likeliest is called possible."""
    diagnosis = explain(f"torch.OutOfMemoryError: {torch(free='0.20').replace('820.11 MiB', '4.00 GiB')}")
    assert said in diagnosis.verdict.headline.to(lang) and diagnosis.judgement.causes[0].certainty == "possible"
    assert [cause.cause for cause in diagnosis.judgement.causes if cause.also_true] == ["fragmentation"]


def test_what_is_only_suspected_is_explained_all_the_same() -> None:
    """A death that nothing proves to be one of memory: what it was if memory was the reason, and no more."""
    headline = cases.diagnosed("killed-while-saving").verdict.headline
    assert "The log does not say why" in headline.en and "Probably: the job was killed while it wrote a checkpoint" in headline.en
    assert "日志没写原因" in headline.zh and "最可能：任务在写检查点时被终止" in headline.zh


def test_a_second_cause_that_is_only_likely_is_told_as_likely() -> None:
    """The headline explains the first; the line of causes says how sure each is, once."""
    diagnosis = cases.diagnosed("a-plateau-after-one-long-sample")
    second = diagnosis.judgement.causes[1]
    assert second.title.en.rstrip(".") not in diagnosis.verdict.headline.en
    assert re.search(r"Why: [^.]*\(certain[^)]*\); [^.]*\(likely", render(diagnosis, "en").replace("\n", " "))
    assert "（很可能" in render(diagnosis, "zh")


def test_where_no_cause_leads_and_no_card_is_known_the_estimate_speaks(tmp_path: Path) -> None:
    """What each card would have to hold, and its largest part, is more than that nothing can be told."""
    log, config = tmp_path / "error.log", tmp_path / "lora.yaml"
    log.write_text("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB.\n", encoding="utf-8")
    config.write_text("model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: lora\nbf16: true\n", encoding="utf-8")
    found = explain(log, configs=[config])
    assert not found.judgement.causes
    assert "of it weights" in render(found, "en").replace("\n", " ") and "其中权重占" in render(found, "zh").replace("\n", "")


def test_one_tensor_larger_than_the_card() -> None:
    """Of a card that is known it is said against that; of an unknown one, which cards could hold it; never of a size that is no size."""
    known = explain(
        "RuntimeError: CUDA out of memory. Tried to allocate 268.21 GiB (GPU 4; 10.92 GiB total capacity; 1.80 GiB already allocated)\n"
    )
    assert "larger than the whole card (10.92 GiB)" in known.verdict.headline.en and "比整张卡" in known.verdict.headline.zh
    unknown = explain("RuntimeError: CUDA out of memory. Tried to allocate 128.00 GiB\n").verdict.headline.en
    assert "larger than most cards" in unknown and "H200-141GB" in unknown
    named = explain("RuntimeError: CUDA out of memory. Tried to allocate 128.00 GiB\n", gpu="A100-80GB").verdict.headline.en
    assert "larger than the whole card (79.25 GiB)" in named
    assert "larger than any card" in explain("RuntimeError: CUDA out of memory. Tried to allocate 900.00 GiB\n").verdict.headline.en
    assert "larger than" not in explain("RuntimeError: CUDA out of memory. Tried to allocate 40.00 GiB\n").verdict.headline.en
    program = explain(
        "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 8.38G of 8.00G hbm. Exceeded hbm capacity by 385.25M.\n"
    ).verdict.headline
    assert "one tensor" not in program.en and "needs 8.38G, and the device has 8.00G" in program.en and "单个张量" not in program.zh
    nonsense = explain("RuntimeError: CUDA out of memory. Tried to allocate 538976288.13 GiB\n").verdict.headline.en
    assert "overflowed" in nonsense and "one tensor" not in nonsense
