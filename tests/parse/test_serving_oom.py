"""Inference engines: what their checks print is read with its figures and its sign, and so are their lines about memory."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable
from typing import NamedTuple

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep import examples

from diagnose import rule_files
from diagnose.facts import FactBook, Value
from diagnose.parse import log_reader
from diagnose.parse.messages import serving_oom
from diagnose.parse.model.reading import Reading
from diagnose.scan import log_scan
from diagnose.scan.source import Source
from diagnose.units import Size

GIB = 2**30


def read(*lines: str) -> Reading:
    return log_reader.read_logs([log_scan.scan(Source.text("\n".join(lines) + "\n", "job.log"))])


def plain(value: Value) -> object:
    return value if isinstance(value, (int, float, str, bool)) or value is None else str(value)


def facts(*lines: str) -> dict[str, object]:
    book = FactBook(read(*lines).facts)
    return {fact.name: plain(book.value(fact.name)) for fact in book}


class Check(NamedTuple):
    """A sentence with slots {a}, {b}, ... of GiB and {n}, {m} of whole numbers; what of it becomes which figure and fact."""

    says: str
    family: str
    phase: str
    check: str
    figures: dict[str, str]
    facts: dict[str, str]


CHECKS = {
    "free below": Check(
        "ValueError: Free memory on device ({a}/{b} GiB) on startup is less than desired GPU memory utilization (0.9, {c} GiB). "
        "Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        *("vllm_kv", "init", "card_not_free"),
        {"free": "a", "capacity": "b", "requested": "c"},
        {},
    ),
    "free below, with the device": Check(
        "ValueError: Free memory on device cuda:3 ({a}/{b} GiB) on startup is less than desired GPU memory utilization (0.85, {c} GiB). "
        "Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        *("vllm_kv", "init", "card_not_free"),
        {"free": "a", "capacity": "b", "requested": "c"},
        {},
    ),
    "budget beside weights of another process": Check(
        "ValueError: Free memory on device cuda:0 ({a}/{b} GiB) on startup is less than the engine's budget after excluding external "
        "process's weights (0.9, {c} GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        *("vllm_kv", "init", "card_not_free"),
        {"free": "a", "capacity": "b", "requested": "c"},
        {},
    ),
    "weights of another process": Check(
        "ValueError: Externally held weights on device cuda:0 ({a}/{b} GiB) exceed the desired GPU memory utilization (0.9, {c} GiB). "
        "Increase GPU memory utilization.",
        *("vllm_kv", "init", "cache_too_small"),
        {"requested": "a", "capacity": "b", "allowed": "c"},
        {},
    ),
    "longest request, V0": Check(
        "ValueError: The model's max seq len ({n}) is larger than the maximum number of tokens that can be stored in KV cache ({m}). "
        "Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
        *("vllm_kv", "kv_cache", "cache_too_small"),
        {},
        {"rollout.max_model_len": "n", "rollout.cache_tokens": "m"},
    ),
    "longest request, 0.8": Check(
        "ValueError: To serve at least one request with the models's max seq len ({n}), ({a} GB KV cache is needed, which is larger than "
        "the available KV cache memory ({b} GB). Try increasing `gpu_memory_utilization` or decreasing `max_model_len`.",
        *("vllm_kv", "kv_cache", "cache_too_small"),
        {"requested": "a", "free": "b"},
        {"rollout.max_model_len": "n"},
    ),
    "longest request, 0.7": Check(
        "ValueError: To serve at least one request with the models's max seq len ({n}), ({a} GB KV cache isneeded, which is larger than "
        "the available KV Cache memory ({b} GB). Try increasing `gpu_memory_utilization` or decreasing `max_model_len`.",
        *("vllm_kv", "kv_cache", "cache_too_small"),
        {"requested": "a", "free": "b"},
        {"rollout.max_model_len": "n"},
    ),
    "longest request, V1": Check(
        "ValueError: To serve at least one request with the model's max seq len ({n}), ({a} GiB KV cache is needed, which is larger than "
        "the available KV cache memory ({b} GiB). Based on the available memory, the estimated maximum model length is {m}. "
        "Try increasing `gpu_memory_utilization` (which also controls CPU memory on the CPU backend) or decreasing `max_model_len`.",
        *("vllm_kv", "kv_cache", "cache_too_small"),
        {"requested": "a", "free": "b"},
        {"rollout.max_model_len": "n", "rollout.fitting_len": "m", "rollout.cache_memory": "b"},
    ),
    "memory in motion": Check(
        "AssertionError: Error in memory profiling. Initial free memory {a} GiB, current free memory {b} GiB. This happens when other "
        "processes sharing the same container release GPU memory while vLLM is profiling during initialization.",
        *("vllm_kv", "init", "card_in_motion"),
        {"free": "b"},
        {"rollout.free_at_start": "a"},
    ),
    "sampler": Check(
        "RuntimeError: CUDA out of memory occurred when warming up sampler with {n} dummy requests. Please try lowering "
        "`max_num_seqs` or `gpu_memory_utilization` when initializing the engine.",
        *("vllm_kv", "init", "warm_up"),
        {},
        {"rollout.max_num_seqs": "n"},
    ),
    "no blocks": Check(
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
        *("vllm_kv", "kv_cache", "cache_too_small"),
        {},
        {},
    ),
    "auto-fit": Check(
        "ValueError: Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single token. "
        "Try increasing `gpu_memory_utilization`.",
        *("vllm_kv", "kv_cache", "cache_too_small"),
        {},
        {},
    ),
    "SGLang, no pool": Check(
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: mem_fraction_static=0.5",
        *("sglang_kv", "kv_cache", "cache_too_small"),
        {},
        {},
    ),
    "SGLang, unbalanced": Check(
        "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory={a}, "
        "local_gpu_memory={b}, local_gpu_memory * 0.9={c}",
        *("sglang_kv", "init", "card_not_free"),
        {"free": "a"},
        {},
    ),
    "SGLang, prefill": Check(
        "RuntimeError: Prefill out of memory. Try to lower your batch size.\nTry to allocate {n} tokens.\n"
        "Available tokens: {m} (available_size=1024 + evictable_size=4096)",
        *("sglang_kv", "generation", "cache_too_small"),
        {},
        {"log.requested_tokens": "n", "log.free_tokens": "m"},
    ),
    "SGLang, newest": Check(
        "RuntimeError: Out of memory. Try to lower your batch size.\nTry to allocate {n} tokens.\nAvailable tokens: {m} (available_size=1)",
        *("sglang_kv", "generation", "cache_too_small"),
        {},
        {"log.requested_tokens": "n", "log.free_tokens": "m"},
    ),
    "TGI, prefill": Check(
        "RuntimeError: Not enough memory to handle {n} prefill tokens. You need to decrease `--max-batch-prefill-tokens`",
        *("other", "init", "prefill_too_long"),
        {},
        {"log.requested_tokens": "n"},
    ),
    "TGI, all tokens": Check(
        'Error: Backend(Warmup(Generation("Not enough memory to handle `max_total_tokens={n}`")))',
        *("other", "kv_cache", "cache_too_small"),
        {},
        {"rollout.max_model_len": "n"},
    ),
    "LMDeploy": Check("RuntimeError: No enough gpu memory for kv cache.", "other", "kv_cache", "cache_too_small", {}, {}),
    "TensorRT-LLM": Check(
        "Executor creation failed due to insufficient GPU memory.\n\nThe following component could not be created: KV cache\n"
        "Total GPU memory (GiB): {b}\nFree GPU memory before component creation attempt (GiB): {a}\n",
        *("cuda_driver", "kv_cache", "none"),
        {"capacity": "b", "free": "a"},
        {},
    ),
    "ollama": Check(
        "Error: model requires more system memory ({a} GiB) than is available ({b} GiB)",
        *("cpu_allocator", "model_load", "none"),
        {"requested": "a", "free": "b"},
        {},
    ),
}

#: How engines print GiB: fixed decimals, rounded without the zeros at the end, or all that a float holds.
STYLES: list[Callable[[float], str]] = [
    lambda gib: f"{gib:.2f}",
    lambda gib: f"{round(gib, 2)}",
    lambda gib: f"{gib:.4f}",
    lambda gib: f"{gib}",
]


def filled(check: Check, style: Callable[[float], str], seed: int) -> tuple[str, dict[str, int], dict[str, str]]:
    """The sentence with random figures: its text, the bytes and numbers in it, and what is printed of each."""
    dice = random.Random(seed)
    amounts = {slot: dice.randrange(2**20, 2**38) for slot in "abc"} | {slot: dice.randrange(1, 10**7) for slot in "nm"}
    shown = {slot: style(amount / GIB) if slot in "abc" else str(amount) for slot, amount in amounts.items()}
    return check.says.format(**shown), amounts, shown


def wrongly_read(check: Check, text: str, amounts: dict[str, int], shown: dict[str, str]) -> list[str]:
    """Where what is read of a log is not what the sentence in it says."""
    reading = read("starting", *text.split("\n"))
    if [event.family for event in reading.events] != [check.family]:
        return [f"events {[(event.family, event.exception) for event in reading.events]}"]
    event, book = reading.events[0], FactBook(reading.facts)
    found = [f"{event.phase} {event.fatal}"] if (event.phase, event.fatal) != (check.phase, True) else []
    if book.word("log.engine_check") != check.check:
        found.append(f"check {book.word('log.engine_check')}")
    for name in ("requested", "free", "capacity", "allowed"):
        size, slot = getattr(event, name), check.figures.get(name)
        if slot is None or size is None:
            found += [f"{name} {size}"] if (slot is None) != (size is None) else []
        elif amounts[slot] not in size or size.text.split()[0] != shown[slot]:
            found.append(f"{name} {size} of {shown[slot]}")
    for name, slot in check.facts.items():
        value = book.value(name)
        if not (amounts[slot] in value if isinstance(value, Size) else value == amounts[slot]):
            found.append(f"{name} {value}")
    return found


@pytest.mark.parametrize("name", CHECKS)
@settings(max_examples=examples(15), deadline=None)
@given(style=st.sampled_from(STYLES), seed=st.integers(0, 10**9))
def test_what_an_engine_prints_is_what_is_read(name: str, style: Callable[[float], str], seed: int) -> None:
    """Every check with any figures, printed as some release does: the same figures, the same sign, one event."""
    text, amounts, shown = filled(CHECKS[name], style, seed)
    assert wrongly_read(CHECKS[name], text, amounts, shown) == []


PREFIXES = (
    "",
    "ERROR 05-14 09:12:31 [core.py:842] ",
    "\x1b[1;36m(EngineCore_DP0 pid=40122)\x1b[0;0m ERROR 05-14 09:12:31 [core.py:842] ",
    "(VllmWorker rank=1 pid=77) ERROR 05-14 09:12:31 [multiproc_executor.py:522] ",
    "[2026-05-14 09:20:11 TP0] ",
    "\x1b[36m(vLLMHttpServer pid=901, ip=10.0.0.2)\x1b[0m ",
)


@for_each("prefix", PREFIXES)
def test_the_prefix_of_an_engine_changes_nothing(prefix: str) -> None:
    """Behind the prefix of any of its processes a check reads the same, those over several lines included."""
    for name, check in CHECKS.items():
        text, amounts, shown = filled(check, STYLES[0], 7)
        assert wrongly_read(check, "\n".join(prefix + line for line in text.split("\n")), amounts, shown) == [], name


@for_each("width", range(60, 160, 7))
def test_a_wrapped_check_is_read_whole(width: int) -> None:
    """Pasted through a narrow terminal, the figures in the next lines belong to the check, wherever the words that find it are whole."""
    literals = rule_files.table("messages")["messages"]["serving_oom"]
    for name in ("free below", "longest request, V0", "longest request, V1", "memory in motion"):
        text, amounts, shown = filled(CHECKS[name], STYLES[0], 11)
        lines = textwrap.wrap(text, width)
        if any(literal in line for literal in literals for line in lines):
            assert wrongly_read(CHECKS[name], "\n".join(lines), amounts, shown) == [], (name, lines)


def test_bare_bytes_are_bytes() -> None:
    """The memory check of V0 and of Ascend prints bytes and no unit; read as GiB they would be 40 EiB."""
    event = read(
        "AssertionError: Error in memory profiling. Initial free memory 44422332416, current free memory 63243255808. "
        "This happens when the NPU memory was not properly cleaned up before initializing the vLLM instance."
    ).events[0]
    assert event.free == Size.printed("63243255808", "bytes")


def test_less_than_nothing_is_a_deficit() -> None:
    """Where weights take more than the share, vLLM prints a negative cache: what is missing is a fact, and no size is negative."""
    lines = [
        "INFO 05-14 09:14:02 [gpu_worker.py:298] Available KV cache memory: -2.16 GiB",
        (
            "ValueError: To serve at least one request with the model's max seq len (4096), (0.5 GiB KV cache is needed, which is larger "
            "than the available KV cache memory (-2.16 GiB). Try increasing `gpu_memory_utilization`."
        ),
    ]
    known = facts(*lines)
    assert (known["rollout.cache_deficit"], "rollout.cache_memory" in known) == ("2.16 GiB", False)
    assert read(*lines).events[0].free is None


def test_checks_tell_their_sign() -> None:
    """Two of them want a larger share of the card and one a smaller: they are never the same word."""
    signs = {name: CHECKS[name].check for name in ("free below", "no blocks", "longest request, V1", "memory in motion", "sampler")}
    assert len({signs["free below"], signs["no blocks"], signs["memory in motion"], signs["sampler"]}) == 4
    assert facts(CHECKS["no blocks"].says)["log.cache_none"] is True
    assert facts(filled(CHECKS["longest request, V1"], STYLES[0], 1)[0])["log.cache_none"] is False


GRAPHS = [
    "[2026-05-14 09:21:40 TP1] Capture cuda graph begin. This can take up to several minutes. avail mem=2.10 GB",
    "Traceback (most recent call last):",
    '  File "/opt/env/sglang/srt/model_executor/cuda_graph_runner.py", line 273, in __init__',
    "    self.capture()",
    '  File "/opt/env/sglang/srt/model_executor/cuda_graph_runner.py", line 360, in capture',
    "    ) = self.capture_one_batch_size(bs, forward)",
    '  File "/opt/env/sglang/srt/models/qwen2.py", line 88, in forward',
    "    x, _ = self.down_proj(x)",
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 256.00 MiB. GPU 1 has a total capacity of 79.11 GiB of which "
        "98.00 MiB is free."
    ),
    "During handling of the above exception, another exception occurred:",
    (
        "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 256.00 MiB. GPU 1 has a total "
        "capacity of 79.11 GiB of "
        "which 98.00 MiB is free."
    ),
    "Possible solutions:",
    "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)",
]


def test_capture_of_graphs_wants_a_smaller_share() -> None:
    """Torch's message while SGLang captures graphs: one event with its figures, and the check that says where it was."""
    reading = read(*GRAPHS)
    assert [(event.family, event.phase, str(event.requested)) for event in reading.events] == [("torch_cuda", "init", "256.00 MiB")]
    assert FactBook(reading.facts).word("log.engine_check") == "graph_capture"
    assert FactBook(read(GRAPHS[0], *GRAPHS[10:]).facts).word("log.engine_check") == "graph_capture"
    assert FactBook(read(GRAPHS[0], *(line.replace("GPU 1", "the ninja build") for line in GRAPHS[11:])).facts).word("log.family") is None


def test_a_start_on_several_cards_is_one_event() -> None:
    """Every worker finds another free figure and prints it twice: one event, its members with the figures of their own cards."""
    lines, free = [], ("30.02", "31.5", "31.48", "29.7")
    for copy in ("(Worker_TP{0} pid=142{0}) ERROR 05-14 09:13:21 [multiproc_executor.py:597] ", "(EngineCore_DP0 pid=1388) "):
        for card, printed in enumerate(free):
            lines.append(
                f"{copy.format(card)}ValueError: Free memory on device cuda:{card} ({printed}/79.18 GiB) on startup is less than desired "
                "GPU memory utilization (0.9, 71.26 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
            )
    lines.append("(APIServer pid=1201) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}")
    reading = read(*lines)
    root = reading.events[0]
    assert reading.root == 0 and all(event.consequence_of == 0 for event in reading.events[1:])
    assert [(one.gpu, str(one.free)) for one in (root, *root.members)] == [(card, f"{printed} GiB") for card, printed in enumerate(free)]


def test_source_code_in_a_traceback_is_no_message() -> None:
    """The statement that raises holds the words of the message; the failure is the line that the exception ends with."""
    raising = '    raise ValueError("No available memory for the cache blocks. "'
    assert read(raising, '                     "Try increasing `gpu_memory_utilization`")').events == ()
    event = read(raising, CHECKS["no blocks"].says).events[0]
    assert (event.exception, event.evidence[0].line) == ("ValueError", 2)


@for_each(
    "line",
    [
        (
            "Free memory on device (22.45/23.99 GiB) on startup. Desired GPU memory utilization is (0.85, 20.39 GiB). "
            "Actual usage is 1.5 GiB "
            "for consumed memory (weights + non-torch), 0.25 GiB for peak activation, and 0.37 GiB for CUDAGraph memory. Replace "
            "gpu_memory_utilization config with `--kv-cache-memory=19468210074` (18.13 GiB) to fit into requested memory, or "
            "`--kv-cache-memory=21679683072` (20.19 GiB) to fully utilize gpu memory. Current kv cache memory in use is 18.65 GiB."
        ),
        (
            "WARNING 11-12 10:11:12 scheduler.py:1057] Sequence group 17 is preempted by PreemptionMode.RECOMPUTE mode "
            "because there is not "
            "enough KV cache space. This can affect the end-to-end performance. total_num_cumulative_preemption=51"
        ),
        "[2026-05-14 10:02:03 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_token_ratio: 0.0980 -> 0.2747",
        "[2026-05-14 10:02:03 TP0] Decode out of memory happened. #retracted_reqs: 3, #new_token_ratio: 0.5 -> 0.9",
        "[2026-05-14 10:02:03] The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=1.5",
        "ggml_cuda_host_malloc: failed to allocate 1024.00 MiB of pinned memory: out of memory",
        "INFO 05-14 09:14:02 [gpu_worker.py:298] Available KV cache memory: 11.37 GiB",
    ],
)
def test_what_an_engine_survives_is_no_failure(line: str) -> None:
    """Preemption, a full cache, and information in the words of the fatal checks do not end an engine."""
    assert read(line, "serving on port 8000").events == ()


def test_slots_are_no_memory() -> None:
    """SGLang's request slots run out of "memory" that is a number of rows."""
    event = read("RuntimeError: alloc_req_slots runs out of memory. Please set a smaller number for `--max-running-requests`.").events[0]
    assert event.status == "lookalike"


def test_ggml_tells_device_memory_from_host_memory() -> None:
    """The same words for a card and for the host: the family follows the buffer, the request is known to the byte."""
    device = [
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9216.00 MiB on device 1: cudaMalloc failed: out of memory",
        "alloc_tensor_range: failed to allocate CUDA1 buffer of size 9663676416",
        "llama_kv_cache_init: failed to allocate buffer for kv cache",
        "llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache",
    ]
    event = read(*device).events[0]
    assert (event.family, event.phase, event.gpu, str(event.requested)) == ("cuda_driver", "kv_cache", 1, "9216.00 MiB")
    assert event.requested is not None and event.requested.exact and event.requested.bytes == 9216 * 2**20
    host = read(
        "ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 42949672960",
        "llama_model_load: error loading model: unable to allocate CPU buffer",
    ).events
    assert [(one.family, one.phase, str(one.requested)) for one in host] == [("cpu_allocator", "model_load", "42949672960 bytes")]


@pytest.mark.parametrize(
    ("line", "families"),
    [
        ("[TM][ERROR] CUDA runtime error: out of memory /opt/lmdeploy/src/turbomind/utils/memory_utils.cu:32", ["cuda_driver"]),
        (
            "[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, mMemPool->getPool(), mCudaStream->get()): out of memory",
            ["cuda_driver"],
        ),
        ("CUDA runtime error in cudaOccupancyMaxActiveBlocksPerMultiprocessor(a, b): device kernel image is invalid", []),
    ],
)
def test_a_runtime_error_of_cuda_is_read_by_its_reason(line: str, families: list[str]) -> None:
    """TurboMind and TensorRT-LLM name the call first and the reason after it; another reason is no failure of memory."""
    assert [event.family for event in read(line, "terminating").events] == families


@settings(max_examples=200, deadline=None)
@given(
    st.text(st.sampled_from(" ()/.,-:`'=0123456789") | st.characters(max_codepoint=0x2FF))
    | st.sampled_from([c.says for c in CHECKS.values()])
)
def test_no_words_raise(text: str) -> None:
    """A check that is cut, garbled or still a template is a message without figures, or none."""
    for end in range(0, len(text), 7):
        serving_oom.read(text[:end])
        serving_oom.read("Not enough memory. Please try to increase --mem-fraction-static" + text[end:])


@pytest.mark.parametrize("name", ["sampler", "TGI, prefill", "TensorRT-LLM"])
def test_an_engine_that_retells_torch_adds_where_it_was(name: str) -> None:
    """Torch's message and the sentence raised in its place are one event: the figures of the first, the check of the second."""
    text, _, _ = filled(CHECKS[name], STYLES[0], 3)
    torch = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 150.00 MiB. GPU 0 has a total capacity of 44.40 GiB of which"
    reading = read(f"{torch} 96.00 MiB is free.", "The above exception was the direct cause of the following exception:", *text.split("\n"))
    assert [(event.family, str(event.requested), event.phase) for event in reading.events] == [
        ("torch_cuda", "150.00 MiB", CHECKS[name].phase)
    ]
    assert FactBook(reading.facts).word("log.engine_check") == CHECKS[name].check
