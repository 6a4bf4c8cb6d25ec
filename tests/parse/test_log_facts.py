"""Facts that a log carries besides the failure: what ran, where, how far it was."""

from __future__ import annotations

import json

from books_of_logs import book, plain, read
from collected import for_each

from diagnose import rule_files
from diagnose.facts import Fact, FactBook, Witness, declared
from diagnose.parse import log_reader
from diagnose.scan import log_scan
from diagnose.scan.source import Source

FAILURE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def test_every_row_of_the_table_speaks_of_declared_facts() -> None:
    """A misspelt fact name would be learnt and never used."""
    for row in rule_files.table("log_lines"):
        for name in (row.get("fact"), row.get("rest"), *row.get("also", {}), *row.get("take", ()), *row.get("keys", {}).values()):
            assert not name or declared(name) is not None, row


@for_each(
    "line, name, value",
    [
        ("torch==2.5.1+cu124", "version.torch", "2.5.1"),
        ("- PyTorch version: 2.5.1+cu124 (GPU)", "version.torch", "2.5.1"),
        ("- `llamafactory` version: 0.9.2.dev0", "version.llamafactory", "0.9.2.dev0"),
        ("openrlhf 0.3.8, torch 2.3.0+cu121, deepspeed 0.14.4", "version.deepspeed", "0.14.4"),
        ("deepspeed: 0.16.1         trl: 0.12.1           torch: 2.5.1+cu124", "version.trl", "0.12.1"),
        ("openrlhf                          0.7.0", "version.openrlhf", "0.7.0"),
        ("2025-03-26 18:02:11,402 - INFO - env - trl 0.17.0.dev0, transformers 4.49.0, liger-kernel 0.5.3", "version.liger", "0.5.3"),
        ("INFO 11-21 09:14:02 llm_engine.py:174] Initializing an LLM engine (v0.5.4) with config: model='a/b'", "version.vllm", "0.5.4"),
        ("please upgrade, this needs torch 2.4 or later", "version.torch", None),
        ('  File "/opt/pkgs/torch-2.4.0/x.py", line 1, in f', "version.torch", None),
        ("- GPU type: Tesla V100-SXM2-32GB", "hardware.gpu", "Tesla V100-SXM2-32GB"),
        (
            "GPU 0: NVIDIA RTX PRO 6000 Blackwell Workstation Edition (UUID: GPU-3f1c9a2d)",
            "hardware.gpu",
            "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
        ),
        (
            "|   0  NVIDIA A100-SXM4-80GB          On  | 00000000:07:00.0 Off |                    0 |",
            "hardware.gpu",
            "NVIDIA A100-SXM4-80GB",
        ),
        ("x\n0, NVIDIA H100 80GB HBM3, 81559 MiB, 4 MiB", "hardware.gpu", "NVIDIA H100 80GB HBM3"),
        ("2025-03-26 18:02:11,402 - INFO - env - 4 x NVIDIA H100 80GB HBM3", "hardware.count", 4),
        ("torch 2.8.0+cu128, vllm 0.10.2, NVIDIA A100-SXM4-80GB", "hardware.gpu", "NVIDIA A100-SXM4-80GB"),
        ("GPU 0-7: NVIDIA A100-SXM4-80GB", "hardware.count", 8),
        ("GPU 0: Tesla T4 (UUID: a)\nGPU 1: Tesla T4 (UUID: b)", "hardware.count", 2),
        ("- System RAM: 500.00 GB", "host.ram", "500.00 GB"),
        ("[utils.py:789:see_memory_usage] CPU Virtual Memory:  used = 50.0 GB, percent = 25.0%", "host.ram", "200.00 GiB"),
        (
            "loading configuration file config.json from cache at /r/hub/models--Qwen--Qwen2.5-7B/snapshots/0a/config.json",
            "model.path",
            "Qwen/Qwen2.5-7B",
        ),
        (
            "[INFO|x.py:696] 2025-02-06 20:11:31,877 >> loading configuration file /data/Qwen2-VL-7B/config.json",
            "model.path",
            "/data/Qwen2-VL-7B",
        ),
        ("trainable params: 20,185,088 || all params: 7,635,801,600 || trainable%: 0.2643", "model.total_params", 7635801600),
        ("[INFO] [stage3.py:130:__init__] Reduce bucket size 500,000,000", "zero.reduce_bucket", 500_000_000),
        ("Process rank: 3, world size: 8, device: cuda:3, compute dtype: torch.bfloat16", "train.compute_dtype", "bf16"),
        ("Process rank: 3, world size: 8, device: cuda:3, compute dtype: torch.bfloat16", "parallel.world", 8),
        ("        `--num_processes` was set to a value of `2`", "parallel.world", 2),
        ("Config mesh_device None world_size = 4", "parallel.world", 4),
        ('  File "/opt/env/deepspeed/runtime/zero/partition_parameters.py", line 1399, in _all_gather', "zero.stage", 3),
        ("  Instantaneous batch size per device = 1,024", "train.micro_batch_size", 1024),
        (
            "RuntimeError: CUDA out of memory. The train loop failed with an internal microbatch of size 1.The GPU",
            "train.micro_batch_size",
            1,
        ),
        ("[INFO] [config.py:1003:print]   bfloat16_enabled ............. True", "train.precision", "bf16"),
        ("[INFO] [config.py:1003:print]   fp16_enabled ................. True", "train.precision", "fp16"),
        ("Gradient checkpointing enabled.", "train.gradient_checkpointing", "enabled"),
        ("Created reference model from the model itself.", "train.ref_model", "copy"),
        ("After vllm offload in sharding manager: 20.73 GB / 47.53 GB.", "rollout.placement", "colocated"),
        ("[torch_memory_saver.cpp] CUresult error: 2 (out of memory) func=cu_mem_create", "rollout.pool_refused", True),
        ("Loading model weights took 30.5022 GB", "rollout.engine_weights", "30.5022 GB"),
        ("can use total_gpu_memory (79.25GiB) x gpu_memory_utilization (0.65) = 51.52GiB", "rollout.gpu_memory_utilization", 0.65),
        ("14 pytorch allocator cache flushes since last step. this happens", "log.cache_flushes", 14),
        ("Loading extension module cpu_adam...", "zero.offload_optimizer", "cpu"),
        ("Loading model from out/checkpoint-500.", "log.resumed", True),
        ("Restoring states from the checkpoint path at out/last.ckpt", "log.resumed", True),
        ("==((====))==  Unsloth - 2x faster free finetuning | Num GPUs = 1", "train.framework", "unsloth"),
        ("==((====))==  Unsloth 2025.3.19: Fast Llama patching. Transformers: 4.50.0.", "train.framework", "unsloth"),
        ("                batch_size per (gpu * forward-pass): 1", "train.micro_batch_size", 1),
        (
            "Swift: PeftModelForCausalLM: 7635.8016M Params (20.1851M Trainable [0.2643%]), 0.0001M Buffers.",
            "model.total_params",
            7635801600,
        ),
        (
            "Swift: PeftModelForCausalLM: 7635.8016M Params (20.1851M Trainable [0.2643%]), 0.0M Buffers.",
            "model.trainable_params",
            20185100,
        ),
        ("number of parameters: 124.44M", "model.total_params", 124440000),
        ("number of parameters: 7.62B", "model.total_params", None),  # a unit of its last figure is ten million
        (' "-____-"     Trainable parameters = 41,943,040 of 8,072,204,288 (0.52% trained)', "model.total_params", 8072204288),
        ("\\        /    Data Parallel GPUs = 2 | Total batch size (2 x 4 x 2) = 16", "train.global_batch", 16),
        ("   \\\\   /|    NVIDIA GeForce RTX 4090. Num GPUs = 1. Max memory: 23.64 GB. Platform: Linux.", "hardware.capacity", "23.64 GB"),
        ("   \\\\   /|    NVIDIA GeForce RTX 4090. Num GPUs = 1. Max memory: 23.64 GB.", "hardware.gpu", "NVIDIA GeForce RTX 4090"),
        ("Hardware: 2x A100 40GB, CUDA 12.1", "hardware.gpu", "A100 40GB"),
        ("- GPUs: 8 x NVIDIA H100 80GB HBM3", "hardware.count", 8),
        ("It fails on 2x A100 40GB although my colleague trains it with the same card.", "hardware.gpu", None),
        ("|   0  GeForce RTX 208...  Off  | 00000000:3B:00.0 Off |                  N/A |", "hardware.gpu", None),
        ("O^O/ \\_/ \\    Torch: 2.8.0+cu128. CUDA: 8.9. CUDA Toolkit: 12.8. Triton: 3.4.0", "version.torch", "2.8.0"),
        (" > number of parameters on (tensor, pipeline) model parallel rank (0, 1): 3735552000", "model.local_params", 3735552000),
        (" > number of parameters on (tensor, gtp_weight_remat, pipeline) model parallel rank (0, 0, 1): 42", "model.local_params", 42),
        (
            "using world size: 16, data-parallel size: 2, tensor-model-parallel size: 4, pipeline-model-parallel size: 2",
            "parallel.tensor",
            4,
        ),
        (
            "using world size: 16, data-parallel size: 2, tensor-model-parallel size: 4, pipeline-model-parallel size: 2",
            "parallel.world",
            16,
        ),
        ("INFO - CUDA capacity: NVIDIA H100 80GB HBM3 with 79.11GiB memory", "hardware.capacity", "79.11 GiB"),
        ("INFO - Model llama3 8B size: 8,030,261,248 total parameters", "model.total_params", 8030261248),
        ("WARNING - 4 CUDA memory allocation retries.", "log.table_retries", 4),
        ("After actor FSDP init, memory allocated (GB): 3.57, memory reserved (GB): 4.02", "log.allocated_after_init", "3.57 GiB"),
        ("[axolotl.x] [RANK:0] Memory usage after model load 14.198GB (+14.198GB allocated)", "log.allocated_after_load", "14.198 GB"),
        (
            "[2026-04-01 10:00:00,001] [INFO] [axolotl.utils.data.sft:310] [PID:812] [RANK:0] max_input_len: 3911",
            "data.longest_sample",
            3911,
        ),
        ("[TensorRT-LLM] max_input_len: 1024", "data.longest_sample", None),
        (
            "Token indices sequence length is longer than the maximum sequence length for this model (41233 > 32768).",
            "log.long_sample",
            41233,
        ),
        ("node-1:88:88 [0] NCCL INFO NCCL version 2.21.5+cuda12.4", "version.nccl", "2.21.5"),
        ("node-1:88:88 [0] NCCL INFO NCCL version 2.21.5+cuda12.4", "version.torch", None),  # several torch releases bring this one
        ("DeepSpeed info: version=0.16.4, git-hash=unknown, git-branch=unknown", "version.deepspeed", "0.16.4"),
        ("[INFO|2026] llamafactory.model.adapter:143 >> Found linear modules: q_proj,v_proj", "lora.targets", "q_proj,v_proj"),
        ('  File "/x/llamafactory.model.py", line 1', "train.framework", None),
        ("[config.py:1001:print]   world_size ................... 8", "parallel.world", 8),
        ("wandb:   train/global_step 1200", "log.step", 1200),
        ("wandb:   train/global_step \u2581\u2583\u2585", "log.step", None),
        ("- GPU memory: 79.15GB", "hardware.capacity", "79.15 GB"),
        ("but the current dype in Qwen2ForCausalLM is torch.float32. You should run", "train.load_dtype", "fp32"),
        ("Resized token embeddings from 151936 to 152064.", "model.vocab_size", 152064),
        ("Theoretical memory footprints: weight and optimizer=20072.31 MB, activation=41210.77 MB", "log.expected_states", "20072.31 MB"),
        ("FSDP plugin (sharding_strategy=<ShardingStrategy.SHARD_GRAD_OP: 2>, ...", "fsdp.sharding", "shard_grad_op"),
        ("MA 0.8 GB         Max_MA 1.2 GB         CA 2 GB         Max_CA 2 GB ", "log.allocated_after_init", "0.8 GB"),
    ],
)
def test_a_line_that_carries_a_fact(line: str, name: str, value: object) -> None:
    """Each known line gives its fact, in the shapes that tools print it; a sentence about a library gives none."""
    assert plain(book(line, FAILURE).value(name)) == value


@for_each(
    "line, world",
    [
        ("+ torchrun --nproc_per_node 8 src/train.py a.yaml", 8),
        ("+ torchrun --nnodes=2 --nproc-per-node=4 train.py", 8),
        ("+ FORCE_TORCHRUN=1 NPROC_PER_NODE=8 llamafactory-cli train a.yaml", 8),
        ("(base) me@node-1:~/work$ accelerate launch --num_processes 16 train.py", 16),
        ("$ deepspeed --num_gpus 2 train.py", 2),
        (
            "[2024-05-06 10:11:12,345] [INFO] [runner.py:571:main] cmd = /bin/python3 -u -m deepspeed.launcher.launch --num_gpus=4 x.py",
            4,
        ),
    ],
)
def test_launch_commands(line: str, world: int) -> None:
    """An echoed command is kept whole with its line, and says how many processes it starts."""
    reading = read("hello", line, FAILURE)
    assert FactBook(reading.facts).count("parallel.world") == world
    assert [(command.witness.line, command.text in line) for command in reading.commands] == [(2, True)]


def test_a_command_over_several_lines_is_one() -> None:
    """People paste commands with backslashes; a command may be longer than what a witness shows."""
    reading = read("$ torchrun --nproc_per_node 2 \\", "    train.py \\", f"    --note {'x' * 900}", FAILURE)
    assert reading.commands[0].text.split() == ["torchrun", "--nproc_per_node", "2", "train.py", "--note", "x" * 900]


def test_what_only_looks_like_a_launch_is_none() -> None:
    """`set -x` echoes every command; only launches matter."""
    assert read("+ pip list", "+ grep -iE '^(torch|deepspeed) '", "We use torchrun --nproc_per_node 8", FAILURE).commands == ()


SET = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


def test_the_allocator_setting_of_a_launch() -> None:
    """The setting that ran, not the hint in the message."""
    lines = ["+ export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:128", FAILURE]
    known = book(*lines)
    assert known.switch("alloc.expandable_segments") is True
    assert plain(known.value("alloc.max_split_size")) == "128.00 MiB"
    assert book(f"{SET} llamafactory-cli train x.yaml", FAILURE).switch("alloc.expandable_segments") is True
    for hint in (f"{SET} to avoid fragmentation", SET, f"Use {SET} python train.py"):  # the message's advice where it is wrapped
        assert "alloc.expandable_segments" not in book(FAILURE, hint)
    assert "alloc.expandable_segments" not in book(f"{FAILURE} try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid")


BAR = "{0}: {1:3d}%|##        | {2}/{3} [00:05<01:00,  2.00it/s]"


@for_each(
    "lines, name, value",
    [
        (["  1%|#   | 7/1173 [00:05<01:00, 2.0s/it]"], "log.step", 7),
        (["  0%|    | 0/267 [00:00<?, ?it/s]"], "log.step", 0),
        ([BAR.format("Loading checkpoint shards", 50, 2, 4)], "log.step", None),
        (
            ["  5%|#   | 50/900 [01:10<19:50, 1.4s/it]", "***** Running Evaluation *****", " 48%|#   | 31/64 [00:43<00:46, 1.4s/it]"],
            "log.step",
            50,
        ),
        (
            [
                "  5%|#   | 50/900 [01:10<19:50, 1.4s/it]",
                "***** Running Evaluation *****",
                "{'eval_loss': 1.0}",
                "  6%|#   | 51/900 [01:10<19:50, 1.4s/it]",
            ],
            "log.step",
            51,
        ),
        (["(ActorModelRayActor pid=1) Episode [1/3]:   9%|#   | 3/34 [8:41:12<89:51:20, 10434.86s/it]"], "log.rounds_done", 3),
        (
            [
                "\x1b[36m(A pid=1)\x1b[0m Episode [1/1]:   0%|    | 0/31 [00:00<?, ?it/s]",
                "Train epoch [1/1]:  50%|#  | 1/2 [00:38<00:38, 38.1s/it]",
            ],
            "log.micro_step",
            1,
        ),
        (["Episode [1/1]:   0%|    | 0/31 [00:00<?, ?it/s]", "Train epoch [1/1]:  50%|#  | 1/2 [00:38<00:38, 38.1s/it]"], "log.step", None),
        ([" iteration       12/     500 | consumed samples:          192 | lm loss: 1.0"], "log.step", 12),
        (["{'loss': 1.0, 'global_step/max_steps': '12/500'}"], "log.step", 12),
        (["[titan] 2026-04-01 10:00:00,001 - root - INFO - \x1b[31mstep: 12  \x1b[32mloss:  8.1"], "log.step", 12),
        (["04/01 10:00:00 - mmengine - INFO - Epoch(train)  [1][  50/1172]  lr: 1.0e-04"], "log.step", 50),
        (["2021-11-06 10:40:22,801 - mmdet - INFO - Epoch [1][3700/29317]\tlr: 2.000e-02, eta: 3 days, memory: 6497"], "log.step", 3700),
        (["Episode [1/1]: 100%|##| 312/312 [6:11:40<00:00, 71.47s/it]"], "log.total_steps", 312),
        (["04/01 10:00:00 - mmengine - INFO - Iter(train) [ 400/80000]  lr: 1.0e-04"], "log.total_steps", 80000),
        (["[04/01 10:00:00 d2.utils.events]:  eta: 1:00:00  iter: 19  total_loss: 1.2"], "log.step", 19),
        (["Iteration:  20% 989/5070 [00:13<08:41,  7.83it/s]"], "log.step", 989),
        (["[cub_64 epoch 7, it 7990, t 1.099] g_loss = 1.0365, d_loss = 1.1345, reg=0.0230"], "log.step", 7990),
        (["Step 7 | loss:1.2 lr:2e-5 tokens_per_second_per_gpu:812.1"], "log.step", 7),
    ],
)
def test_how_far_it_was(lines: list[str], name: str, value: int | None) -> None:
    """Bars of loading, evaluating and inner loops do not count optimizer steps."""
    reading = read(*lines, FAILURE)
    assert FactBook(reading.facts).value(name) == value
    assert reading.events[0].step == FactBook(reading.facts).count("log.step")


def test_memory_lines_belong_to_roles_and_moments() -> None:
    """What was allocated before the states existed is not what was allocated after; the critic has its own figure."""
    known = book(
        "(ActorModelRayActor pid=1) [utils.py:781:see_memory_usage] Before initializing optimizer states",
        "(ActorModelRayActor pid=1) [utils.py:782:see_memory_usage] MA 11.00 GB         Max_MA 42.8 GB         CA 45.05 GB ",
        "(ActorModelRayActor pid=1) [utils.py:781:see_memory_usage] After initializing ZeRO optimizer",
        "(ActorModelRayActor pid=1) [utils.py:782:see_memory_usage] MA 39.06 GB         Max_MA 42.8 GB         CA 45.05 GB ",
        "(CriticModelRayActor pid=2) [utils.py:782:see_memory_usage] MA 35.88 GB         Max_MA 40.2 GB         CA 41.02 GB ",
        FAILURE,
    )
    assert plain(known.value("log.allocated_after_init")) == "39.06 GB"
    assert plain(known.value("log.critic_allocated_after_init")) == "35.88 GB"


def test_the_banner_implies_the_number_of_processes() -> None:
    """Rows per step over rows per card and accumulation."""
    banner = [
        "***** Running training *****",
        "  Instantaneous batch size per device = 2",
        "  Total train batch size (w. parallel, distributed & accumulation) = 128",
        "  Gradient Accumulation steps = 8",
    ]
    assert book(*banner, FAILURE).count("parallel.world") == 8
    assert book("+ torchrun --nproc_per_node 4 x.py", *banner, FAILURE).count("parallel.world") == 4


def test_the_printed_configuration_of_a_model_gives_its_dimensions() -> None:
    """A dump of transformers is as good as the config.json."""
    config = {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
        "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064,
        "tie_word_embeddings": False, "max_position_embeddings": 32768,
    }  # fmt: skip
    dump = json.dumps(config, indent=2).split("\n")[1:]
    shape = book("[INFO|configuration_utils.py:768] 2025-01-01 00:00:00,000 >> Model config Qwen2Config {", *dump, FAILURE).shape(
        "model.shape"
    )
    assert shape is not None
    assert (shape.h, shape.f, shape.L, shape.V) == (3584, 18944, 28, 152064)
    assert book("Model config Qwen2Config {", *dump[:4], FAILURE).shape("model.shape") is None


def test_the_engine_beside_the_trainer() -> None:
    """Asleep or awake at the failure, and which process on the card it is."""
    engine = [
        "can use total_gpu_memory (79.25GiB) x gpu_memory_utilization (0.65) = 51.52GiB",
        "Sleep mode freed 50.98 GiB memory, 0.94 GiB memory is still in use.",
        "It took 1.884201 seconds to wake up.",
    ]
    crowded = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.14 GiB. GPU 0 has a total capacity of 79.25 GiB "
        "of which 1.24 GiB is free. "
        "Process 11 has 52.43 GiB memory in use. Process 12 has 4.27 GiB memory in use. Process 13 has 21.29 GiB memory in use. "
        "Of the allocated memory 19.31 GiB is allocated by PyTorch, and 611.52 MiB is reserved by PyTorch but unallocated."
    )
    known = book(*engine, crowded)
    assert (known.switch("log.engine_awake"), plain(known.value("log.engine_in_use")), plain(known.value("log.other_processes"))) == (
        True,
        "52.43 GiB",
        "56.70 GiB",
    )
    assert book(*engine[:2], crowded).switch("log.engine_awake") is False


def test_frames_show_the_attention_implementation() -> None:
    """What eager attention alone runs, with its line."""
    lines = [
        "Traceback (most recent call last):",
        '  File "/x/modeling_deepseek.py", line 869, in forward',
        "    attn_weights = nn.functional.softmax(",
        '  File "/x/torch/nn/functional.py", line 2142, in softmax',
        "    ret = input.softmax(dim, dtype=dtype)",
        FAILURE,
    ]
    fact = book(*lines).fact("model.attention")
    assert fact is not None
    assert (fact.value, fact.witness.line) == ("eager", 3)


def test_frames_show_whose_model_and_whose_engine_failed() -> None:
    """Megatron's layers take nothing that patches transformers' models; an engine's own code names the engine."""

    def of(file: str, line: str) -> FactBook:
        return book("Traceback (most recent call last):", f'  File "/x/{file}", line 8, in forward', f"    {line}", FAILURE)

    loss = of("verl/utils/megatron/tensor_parallel.py", "normalized = vocab_parallel_logits - logits_max")
    assert (loss.switch("log.megatron"), loss.word("log.phase"), loss.word("rollout.engine")) == (True, "loss", None)
    pool = of("vllm/worker/model_runner.py", "hidden = self.model(tokens)")
    assert (pool.switch("log.megatron"), pool.word("rollout.engine")) == (None, "vllm")


def test_a_frame_of_checkpointing_shows_it_is_on_where_no_setting_says_more() -> None:
    """The frame proves that something is recomputed; which kind it is, a configuration knows better."""
    lines = ["Traceback (most recent call last):", '  File "/x/torch/utils/checkpoint.py", line 1138, in unpack_hook', FAILURE]
    facts = book(*lines)
    assert facts.word("train.gradient_checkpointing") == "enabled"
    said = FactBook([*read(*lines).facts, Fact("train.gradient_checkpointing", "offload", "config", Witness("c.yaml", 1, 1))])
    assert said.word("train.gradient_checkpointing") == "offload"


def test_the_failure_is_a_set_of_facts() -> None:
    """Rules see the root event as facts, each with the line of the message."""
    known = book("[rank5]: " + FAILURE)
    assert [known.value(f"log.{name}") for name in ("family", "rank")] == ["torch_cuda", 5]
    assert plain(known.value("log.requested")) == "2.00 GiB"
    assert "log.capacity" not in known
    fact = known.fact("log.requested")
    assert fact is not None
    assert (fact.origin, fact.witness.line) == ("log", 1)


@for_each(
    "file, stage",
    [
        ("/env/site-packages/trl/trainer/dpo_trainer.py", "dpo"),
        ("/data/LLaMA-Factory/src/llamafactory/train/kto/trainer.py", "kto"),
        ("/env/site-packages/trl/trainer/grpo_trainer.py", "grpo"),
        ("/env/site-packages/transformers/trainer.py", None),
    ],
)
def test_the_trainer_in_the_traceback_tells_the_method(file: str, stage: str | None) -> None:
    """A bare traceback of a preference job has chosen and rejected rows, which its frames say and nothing else does."""
    log = (
        f'Traceback (most recent call last):\n  File "{file}", line 10, in compute_loss\n    loss = self.loss(batch)\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 79.15 GiB of which "
        "1.07 GiB is free. Of the allocated memory 74.80 GiB is allocated by PyTorch, and 2.19 GiB is reserved by PyTorch but "
        "unallocated.\n"
    )
    told = [fact for fact in log_reader.read_logs([log_scan.scan(Source.text(log))]).facts if fact.name == "train.stage"]
    assert [fact.value for fact in told] == ([stage] if stage else [])
    assert all(fact.origin == "derived" for fact in told), "a config that names the method is believed first"
