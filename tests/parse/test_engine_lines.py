"""What engines print about memory while they start and run: facts of their own, each with its line."""

from __future__ import annotations

from collected import for_each

from diagnose.facts import FactBook, Value
from diagnose.parse import log_reader
from diagnose.parse.model.reading import Reading
from diagnose.scan import log_scan
from diagnose.scan.source import Source
from diagnose.units import Size


def read(*lines: str) -> Reading:
    return log_reader.read_logs([log_scan.scan(Source.text("\n".join(lines) + "\n", "job.log"))])


def plain(value: Value) -> object:
    return value if isinstance(value, (int, float, str, bool)) or value is None else str(value)


def facts(*lines: str) -> dict[str, object]:
    book = FactBook(read(*lines).facts)
    return {fact.name: plain(book.value(fact.name)) for fact in book}


INFO = "(EngineCore_DP0 pid=1388) INFO 05-14 09:12:20 [core.py:76] "
V0 = (
    "model weights take 14.99GiB; non_torch_memory takes 0.07GiB; PyTorch activation peak memory takes 1.40GiB; "
    "the rest of the memory reserved for KV Cache is 4.82GiB."
)
ENGINE = (
    f"{INFO}Initializing a V1 LLM engine (v0.10.2) with config: model='Qwen/Qwen2.5-7B-Instruct', speculative_config=None, "
    "tokenizer='Qwen/Qwen2.5-7B-Instruct', dtype=torch.bfloat16, max_seq_len=32768, download_dir=None, tensor_parallel_size=2, "
    "quantization=None, kv_cache_dtype=auto, seed=0"
)
ARGS = (
    "(APIServer pid=1) INFO 05-14 09:12:01 [utils.py:328] non-default args: {'model': '/models/a', 'gpu_memory_utilization': 0.92, "
    "'max_model_len': 8192, 'max_num_seqs': 64, 'quantization': 'awq', 'enable_sleep_mode': True, 'dtype': 'bfloat16'}"
)
SGLANG = (
    "[2026-05-14 09:20:01] server_args=ServerArgs(model_path='Qwen/Qwen2.5-7B', tokenizer_path='Qwen/Qwen2.5-7B', context_length=None, "
    "dtype='auto', quantization='fp8', mem_fraction_static=0.85, max_running_requests=256, tp_size=4, dp_size=1)"
)


@for_each(
    "line, known",
    [
        (f"{INFO}Model loading took 14.99 GiB memory and 5.104 seconds", {"rollout.engine_weights": "14.99 GiB"}),
        (f"{INFO}Available KV cache memory: 11.37 GiB", {"rollout.cache_memory": "11.37 GiB"}),
        (f"{INFO}GPU KV cache size: 87,472 tokens", {"rollout.cache_tokens": 87472}),
        (
            f"{INFO}GPU KV cache size: 87,472 tokens, Maximum concurrency for 32,768 tokens per request: 2.67x",
            {"rollout.cache_tokens": 87472, "rollout.max_model_len": 32768, "rollout.cache_concurrency": 2.67},
        ),
        (f"{INFO}Graph capturing finished in 22 secs, took 0.64 GiB", {"rollout.graph_memory": "0.64 GiB"}),
        (
            f"{INFO}CUDA graph pool memory: 0.19 GiB (actual), 0.64 GiB (estimated), difference: 0.45 GiB (244.2%).",
            {"rollout.graph_memory": "0.19 GiB"},
        ),
        (
            V0,
            {
                "rollout.engine_weights": "14.99 GiB",
                "rollout.not_torch": "0.07 GiB",
                "rollout.activation_peak": "1.40 GiB",
                "rollout.cache_memory": "4.82 GiB",
            },
        ),
        (
            V0.replace("4.82", "-2.16"),
            {"rollout.cache_deficit": "2.16 GiB", "rollout.cache_memory": None, "rollout.activation_peak": "1.40 GiB"},
        ),
        (
            (
                "Memory profiling results: total_gpu_memory=23.65GiB initial_memory_usage=15.02GiB peak_torch_memory=16.40GiB "
                "memory_usage_post_profile=15.10GiB non_torch_memory=0.09GiB kv_cache_size=4.79GiB gpu_memory_utilization=0.90"
            ),
            {"rollout.not_torch": "0.09 GiB", "rollout.cache_memory": "4.79 GiB", "rollout.gpu_memory_utilization": 0.9},
        ),
        (
            f"{INFO}Initial free memory: 78.6 GiB; Requested memory: 0.9 (util), 71.26 GiB",
            {"rollout.free_at_start": "78.6 GiB", "rollout.gpu_memory_utilization": 0.9, "rollout.engine_budget": "71.26 GiB"},
        ),
        (
            (
                f"{INFO}Free memory on device (93.83/95.01 GiB) on startup. Desired GPU memory utilization is (0.975, "
                f"92.63 GiB). Actual use "
                "is 82.69 GiB for consumed memory (weights + non-torch), 1.66 GiB for peak activation, and 0.19 GiB for CUDAGraph memory. "
                "Replace gpu_memory_utilization config with `--kv-cache-memory-bytes=8538253005` (7.95 GiB) to fit into "
                "requested memory, or "
                "`--kv-cache-memory-bytes=9820551680` (9.15 GiB) to fully utilize gpu memory. Current kv cache memory in use is 8.28 GiB."
            ),
            {
                "rollout.gpu_memory_utilization": 0.975,
                "rollout.engine_budget": "92.63 GiB",
                "rollout.activation_peak": "1.66 GiB",
                "rollout.graph_memory": "0.19 GiB",
                "rollout.cache_suggested": "7.95 GiB",
                "rollout.cache_memory": "8.28 GiB",
            },
        ),
        (
            "Initial free memory 78.6 GiB, reserved 20.0 GiB memory for KV Cache as specified by kv_cache_memory_bytes config and skipped",
            {"rollout.free_at_start": "78.6 GiB", "rollout.cache_memory": "20.0 GiB"},
        ),
        (f"{INFO}Auto-fit max_model_len: reduced from 131072 to 90112 to fit in available GPU memory", {"rollout.max_model_len": 90112}),
        (
            f"{INFO}Sleep mode freed 30.12 GiB memory, 5.20 GiB memory is still in use.",
            {"rollout.sleep_freed": "30.12 GiB", "rollout.sleep_left": "5.20 GiB", "rollout.sleep": True},
        ),
        (
            f"{INFO}Sleep mode (level=1) freed 30.12 GiB memory, 5.20 GiB memory is still in use.",
            {"rollout.sleep_freed": "30.12 GiB", "rollout.sleep_left": "5.20 GiB"},
        ),
        (
            (
                "Sequence group 17 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. "
                "total_num_cumulative_preemption=51"
            ),
            {"rollout.preemptions": 51, "rollout.cache_full": True},
        ),
        (
            ENGINE,
            {
                "rollout.model": "Qwen/Qwen2.5-7B-Instruct",
                "rollout.dtype": "bf16",
                "rollout.max_model_len": 32768,
                "rollout.tensor_parallel": 2,
                "rollout.quantization": None,
                "rollout.engine": "vllm",
                "version.vllm": "0.10.2",
            },
        ),
        (
            ARGS,
            {
                "rollout.gpu_memory_utilization": 0.92,
                "rollout.max_model_len": 8192,
                "rollout.max_num_seqs": 64,
                "rollout.quantization": "awq",
                "rollout.sleep": True,
                "rollout.dtype": "bf16",
                "rollout.model": "/models/a",
            },
        ),
        (
            SGLANG,
            {
                "rollout.model": "Qwen/Qwen2.5-7B",
                "rollout.gpu_memory_utilization": 0.85,
                "rollout.tensor_parallel": 4,
                "rollout.max_num_seqs": 256,
                "rollout.max_model_len": None,
                "rollout.quantization": "fp8",
                "rollout.dtype": None,
                "rollout.engine": "sglang",
            },
        ),
        ("[2026-05-14 09:20:11 TP0] Load weight begin. avail mem=78.60 GB", {"rollout.free_at_start": "78.60 GB"}),
        (
            (
                "[2026-05-14 09:20:11 TP0] Load weight end. elapsed=11.20 s, type=Qwen2ForCausalLM, "
                "dtype=torch.bfloat16, avail mem=63.44 GB, "
                "mem usage=15.22 GB."
            ),
            {"rollout.engine_weights": "15.22 GB"},
        ),
        (
            "[2026-05-14 09:20:12 TP0] KV Cache is allocated. #tokens: 932104, K size: 24.89 GB, V size: 24.90 GB",
            {"rollout.cache_tokens": 932104, "rollout.cache_memory": "49.79 GiB"},
        ),
        (
            "[2026-05-14 09:20:12] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 4096, KV size: 0.27 GB",
            {"rollout.cache_tokens": 4096, "rollout.cache_memory": "0.27 GB"},
        ),
        (
            (
                "[2026-05-14 09:20:40 TP0] max_total_num_tokens=932104, chunked_prefill_size=8192, max_prefill_tokens=16384, "
                "max_running_requests=2048, context_len=32768, available_gpu_mem=9.31 GB"
            ),
            {"rollout.cache_tokens": 932104, "rollout.max_num_seqs": 2048, "rollout.max_model_len": 32768},
        ),
        (
            "[2026-05-14 09:20:39 TP0] Capture cuda graph end. Time elapsed: 8.10 s. mem usage=1.95 GB. avail mem=9.31 GB.",
            {"rollout.graph_memory": "1.95 GB"},
        ),
        (
            "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 26.91 GiB for max tokens in paged KV cache (220480).",
            {"rollout.cache_memory": "26.91 GiB", "rollout.cache_tokens": 220480},
        ),
        (
            "After actor FSDP init, memory allocated (GB): 3.57, memory reserved (GB): 4.02, device memory used/total (GB): 5.77/79.11",
            {"log.phase_allocated": "3.57 GB", "log.phase_reserved": "4.02 GB", "log.phase_device": "5.77 GB"},
        ),
        ("load_tensors:        CUDA0 model buffer size =  4403.49 MiB", {"rollout.engine_weights": "4403.49 MiB"}),
    ],
)
def test_a_line_of_an_engine_carries_facts(line: str, known: dict[str, object]) -> None:
    """Each known line gives its facts, with their line, whatever process of the engine prints it."""
    found = facts(line, "serving")
    assert {name: found.get(name) for name in known} == known


def test_much_text_around_changes_no_fact() -> None:
    """From half a megabyte on all lines are searched for at once: what is found is the same, the first or the last of its kind."""
    lines = (
        ENGINE,
        ARGS,
        V0,
        f"{INFO}Available KV cache memory: 11.37 GiB",
        f"{INFO}Sleep mode freed 1.00 GiB memory, 2.00 GiB memory is still in use.",
    )
    noise = ["INFO 05-14 09:12:20 [loggers.py:118] Engine 000: Avg prompt throughput: 12.0 tokens/s, GPU KV cache usage: 3.1%"] * 8000
    assert facts(*lines, *noise, lines[-1]) == facts(*lines, lines[-1])


def test_gigabytes_of_text_generation_inference_are_decimal() -> None:
    """It divides by 1e9 where the others divide by 2^30; 7 % are more than the margin of many a plan."""
    book = FactBook(read("DEBUG text_generation: Free memory 40.12GB , (real: 41.10GB").facts)
    assert book.size("rollout.free_at_start") == Size(40_115_000_000, 40_125_000_000, 40_120_000_000, "40.12GB")


def test_what_an_engine_serves_is_not_what_is_trained() -> None:
    """A server's log names no trained model: taken for one, its weights would be looked for whole on every card."""
    assert "model.path" not in facts(ENGINE, SGLANG)


OOM = "CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 15.56 GiB of which 442.62 MiB is free."
PROFILES = "WARNING 04-27 16:27:59 [profiling.py:245] The sequence length used for profiling (max_num_batched_tokens = 20000) is too short"


@for_each(
    "lines, check",
    [
        ((PROFILES, OOM), "prefill_too_long"),
        (
            (f"{INFO}Exception in worker VllmWorkerProcess while processing method determine_num_available_blocks: {OOM}",),
            "prefill_too_long",
        ),
        ((PROFILES, f"{INFO}# GPU blocks: 2110, # CPU blocks: 512", OOM), "none"),
        ((f"{INFO}Capturing cudagraphs for decoding. This may lead to unexpected consequences", OOM), "graph_capture"),
        ((f"{INFO}Capturing cudagraphs for decoding.", f"{INFO}Graph capturing finished in 22 secs, took 0.64 GiB", OOM), "none"),
        ((OOM,), "none"),
    ],
)
def test_a_failure_without_frames_is_of_the_last_thing_that_an_engine_began(lines: tuple[str, ...], check: str) -> None:
    assert facts(*lines)["log.engine_check"] == check


@for_each("after, phase", [((), "model_load"), ((f"{INFO}# GPU blocks: 2110, # CPU blocks: 512",), None)])
def test_the_method_that_failed_in_a_worker(after: tuple[str, ...], phase: str | None) -> None:
    """vLLM names the method before the message of its worker; weights that were loaded since are not what failed."""
    line = f"{INFO}Exception in worker VllmWorkerProcess while processing method load_model."
    assert facts(line, *after, OOM).get("log.phase") == phase


@for_each(
    "lines, known",
    [
        (("load_tensors: offloaded 49/49 layers to GPU",), {"log.card_layers": 49}),
        (
            ('source=memory.go:356 msg="offload to cuda" layers.offload=5 memory.available="[23.3 GiB]"',),
            {"log.card_layers": 5, "log.card_free": "23.3 GiB"},
        ),
        (('msg="offload to cuda" memory.available="[23.3 GiB 23.3 GiB]"',), {"log.card_free": None}),
        (("  Device 0: RTX 3090, compute capability 8.6, VMM: yes, VRAM: 24126 MiB (23863 MiB free)",), {"log.card_free": "23863 MiB"}),
        (("Model: 94.30 / 47.83",), {"log.card_free": "94.30 GiB"}),
    ],
)
def test_what_the_card_had_before_the_layers_came(lines: tuple[str, ...], known: dict[str, object]) -> None:
    told = facts(*lines)
    assert {name: told.get(name) for name in known} == known


def test_the_method_that_another_worker_names_is_nearer_than_a_title() -> None:
    """Workers fail alike: the first line below a message says in which call, whatever an earlier one said."""
    message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 2 has a total capacity of 14.62 GiB"
    method = "(VllmWorkerProcess pid=7) ERROR Exception in worker VllmWorkerProcess while processing method {}."
    above, below = method.format("determine_num_available_blocks"), method.format("load_model")
    assert [event.phase for event in read(message, below).events] == ["model_load"]
    assert [event.phase for event in read(above, "x" * 400, message, below).events] == ["model_load"]
    assert [event.phase for event in read(above, message, "x" * 400, below).events] == ["init"]
