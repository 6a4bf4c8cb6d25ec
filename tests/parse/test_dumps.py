"""Settings that programs print whole into their logs: found, read by the framework's table, quoted by the line they stand in."""

from __future__ import annotations

import json

from collected import for_each
from hypothesis import given
from hypothesis import strategies as st
from pace import within

from diagnose import rule_files
from diagnose.adapters import config_reader
from diagnose.adapters.formats.printed_settings import Reader, parse_overrides
from diagnose.adapters.formats.settings import ConfigSource, Settings
from diagnose.adapters.schema import framework_tables
from diagnose.facts import Fact, FactBook
from diagnose.parse import log_reader
from diagnose.scan import log_scan
from diagnose.scan.source import Source

FAILURE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def settings(text: str, *configs: tuple[str, str]) -> tuple[FactBook, Settings]:
    reading = log_reader.read_logs([log_scan.scan(Source.text(f"{text}\n{FAILURE}\n", "job.log"))])
    book = FactBook(reading.facts)
    told = config_reader.read([ConfigSource(name, body.encode()) for name, body in configs], reading, book)
    return FactBook(book).learn(told.facts), told


def fact(text: str, name: str) -> Fact:
    found = settings(text)[0].fact(name)
    assert found is not None, name
    return found


ARGUMENTS = """\
04/01/2026 10:00:00 - INFO - __main__ - Training/evaluation parameters Seq2SeqTrainingArguments(
_n_gpu=1,
accelerator_config={'split_batches': False, 'dispatch_batches': None, 'even_batches': True},
bf16=True,
deepspeed=None,
eval_strategy=<IntervalStrategy.NO: 'no'>,
fsdp=[],
gradient_accumulation_steps=8,
  0%|          | 0/500 [00:00<?, ?it/s]
gradient_checkpointing=True,
lr_scheduler_type=SchedulerType.COSINE,
optim=<OptimizerNames.PAGED_ADAMW_8BIT: 'paged_adamw_8bit'>,
output_dir=/out/sft (run 2),
per_device_train_batch_size=2,
report_to=['wandb'],
)"""

ENGINE = """\
[2026-04-01 10:00:01,001] [INFO] [config.py:997:print] DeepSpeedEngine configuration:
[2026-04-01 10:00:01,001] [INFO] [config.py:1001:print]   activation_checkpointing_config  {
    "partition_activations": false
}
[2026-04-01 10:00:01,001] [INFO] [config.py:1001:print]   bfloat16_enabled ............. True
[2026-04-01 10:00:01,001] [INFO] [config.py:1001:print]   world_size ................... 8
[2026-04-01 10:00:01,001] [INFO] [config.py:1001:print]   zero_config .................. stage=3 reduce_bucket_size=12845056 \
overlap_comm=True offload_optimizer=DeepSpeedZeroOffloadOptimizerConfig(device='cpu', pin_memory=True) elastic_checkpoint=False
[2026-04-01 10:00:01,001] [INFO] [config.py:987:print_user_config]   json = {
    "train_batch_size": 128,
    "train_micro_batch_size_per_gpu": 2,
    "zero_optimization": {
        "stage": 3,
        "offload_optimizer": {
            "device": "cpu"
        }
    }
}"""

MEGATRON = """\
------------------------ arguments ------------------------
  bf16 ............................................ True
  context_parallel_size ........................... 1
  global_batch_size ............................... 256
  micro_batch_size ................................ 2
  num_layers ...................................... 32
 > setting tensorboard ...
  pipeline_model_parallel_size .................... 2
  recompute_granularity ........................... selective
  seq_length ...................................... 4096
  tensor_model_parallel_size ...................... 4
  world_size ...................................... 16
-------------------- end of arguments ---------------------"""

VERL = """\
(TaskRunner pid=4242) {'actor_rollout_ref': {'actor': {'fsdp_config': {'model_dtype': 'fp32',
(TaskRunner pid=4242)                                                  'optimizer_offload': False},
(WorkerDict pid=5151) Model config after override: Qwen2Config
(TaskRunner pid=4242)                                  'ppo_micro_batch_size_per_gpu': 4},
(TaskRunner pid=4242)                        'model': {'path': 'Qwen/Qwen2.5-7B-Instruct'},
(TaskRunner pid=4242)                        'rollout': {'gpu_memory_utilization': 0.6, 'n': 5}},
(TaskRunner pid=4242)  'algorithm': {'adv_estimator': 'grpo'},
(TaskRunner pid=4242)  'data': {'max_prompt_length': 1024}}"""

AXOLOTL = """\
[2026-04-01 10:00:00,120] [INFO] [axolotl.cli.config.load_cfg:248] [PID:812] [RANK:0] config:
{
  "adapter": "qlora",
  "base_model": "NousResearch/Llama-3.2-1B",
  "gradient_checkpointing": true,
  "micro_batch_size": 4,
  "sample_packing": true,
  "sequence_len": 8192
}"""

OPENRLHF = (
    "Namespace(pretrain='Qwen/Qwen2.5-7B', micro_train_batch_size=4, zero_stage=3, lora_rank=0, max_len=2048, "
    "gradient_checkpointing=True, input_template='User: {}, (a=1)\\nAssistant: ', target_modules=None, adam_offload=False)"
)

SWIFT = """\
[INFO:swift] args: TrainArguments(
model='Qwen/Qwen2.5-7B-Instruct',
torch_dtype=torch.bfloat16,
attn_impl=None,
max_length=8192,
train_type='lora',
lora_rank=16,
target_modules=['all-linear'],
per_device_train_batch_size=1,
)"""

TORCHTUNE = """\
INFO:torchtune.utils._logging:Running LoRAFinetuneRecipeSingleDevice with resolved config:

batch_size: 2
model:
  _component_: torchtune.models.llama3.lora_llama3_8b
  lora_rank: 16
optimizer:
  _component_: torch.optim.AdamW
tokenizer:
  max_seq_len: 4096

DEBUG:torchtune.utils._logging:Setting manual seed to local seed 42."""

HYDRA = "Error executing job with overrides: ['actor_rollout_ref.model.path=Qwen/Qwen2.5-7B', 'actor_rollout_ref.rollout.n=5', '+a.b=null']"

ACCELERATE = """\
- `Accelerate` version: 1.2.1
- System RAM: 503.50 GB
- GPU type: NVIDIA A100-SXM4-80GB
- `Accelerate` default config:
\t- compute_environment: LOCAL_MACHINE
\t- distributed_type: DEEPSPEED
\t- mixed_precision: bf16
\t- num_processes: 8
\t- deepspeed_config: {'gradient_accumulation_steps': 4, 'offload_optimizer_device': 'cpu', 'zero_stage': 2}
- something else: 1"""


@for_each(
    "text, name, value, line",
    [
        (ARGUMENTS, "train.micro_batch_size", 2, 14),
        (ARGUMENTS, "train.gradient_accumulation", 8, 8),
        (ARGUMENTS, "train.precision", "bf16", 4),
        (ARGUMENTS, "train.optimizer", "paged_adamw_8bit", 12),
        (ARGUMENTS, "eval.enabled", False, 6),
        (ENGINE, "zero.stage", 3, 12),
        (ENGINE, "zero.offload_optimizer", "cpu", 14),
        (ENGINE, "zero.reduce_bucket", 12845056, 7),
        (ENGINE, "train.precision", "bf16", 5),
        (ENGINE, "parallel.world", 8, 6),
        (MEGATRON, "parallel.tensor", 4, 11),
        (MEGATRON, "parallel.world", 16, 12),
        (MEGATRON, "train.max_seq_len", 4096, 10),
        (MEGATRON, "train.gradient_checkpointing", "selective", 9),
        (MEGATRON, "train.framework", "megatron", None),
        (VERL, "train.micro_batch_size", 4, 4),
        (VERL, "rollout.gpu_memory_utilization", 0.6, 6),
        (VERL, "train.load_dtype", "fp32", 1),
        (VERL, "train.stage", "grpo", 7),
        (AXOLOTL, "train.max_seq_len", 8192, 8),
        (AXOLOTL, "train.packing", True, 7),
        (AXOLOTL, "train.framework", "axolotl", 2),
        (OPENRLHF, "zero.stage", 3, 1),
        (OPENRLHF, "train.micro_batch_size", 4, 1),
        (OPENRLHF, "train.framework", "openrlhf", 1),
        (SWIFT, "train.max_seq_len", 8192, 5),
        (SWIFT, "train.load_dtype", "bf16", 3),
        (SWIFT, "lora.rank", 16, 7),
        (TORCHTUNE, "train.micro_batch_size", 2, 3),
        (TORCHTUNE, "lora.rank", 16, 6),
        (TORCHTUNE, "train.max_seq_len", 4096, 10),
        (HYDRA, "rollout.num_generations", 5, 1),
        (HYDRA, "actor.model", "Qwen/Qwen2.5-7B", 1),
    ],
)
def test_a_dump_says_what_was_in_effect(text: str, name: str, value: object, line: int | None) -> None:
    """Each program's way to print its settings gives knobs of origin log, quoted by the line that holds the key."""
    found = fact(text, name)
    assert (found.value, found.origin) == (value, "log")
    assert line is None or found.witness.line == line
    assert found.witness.text in text.split("\n")[found.witness.line - 1]


def test_every_row_names_a_framework_that_there_is() -> None:
    """A misspelt framework would make a dump read as nothing."""
    for row in rule_files.table("dumps"):
        assert row.get("framework", "verl") in framework_tables.names() and row["form"] in ("values", "rows", "yaml", "overrides"), row
        assert row.get("from", "") in row["says"]


def test_the_key_of_a_long_line_is_quoted() -> None:
    """A Namespace stands in one line of thousands of characters: the witness shows the part that matters and its column."""
    text = OPENRLHF[:-1] + ", " + ", ".join(f"option_{i}={i}" for i in range(400)) + ", max_samples=77, micro_rollout_batch_size=16)"
    found = fact(text, "rollout.micro_batch")
    assert found.witness.column == text.index("micro_rollout_batch_size") + 1
    assert found.witness.text.startswith("micro_rollout_batch_size=16")


def test_what_the_machine_is_set_up_with_is_no_proof() -> None:
    """Accelerate's environment report tells the default configuration, which a launch may replace."""
    assert fact(ACCELERATE, "zero.stage").origin == "config"
    assert fact(ACCELERATE, "parallel.world").value == 8
    other = f"+ accelerate launch --config_file other.yaml train.py\n{ACCELERATE}"
    assert "zero.stage" not in settings(other)[0]


def test_the_log_wins_over_the_file_and_says_so() -> None:
    """A file that was edited after the run started is not what ran: the fact and a notice name both places."""
    text, yaml = AXOLOTL, "base_model: NousResearch/Llama-3.2-1B\nmicro_batch_size: 4\nsequence_len: 2048\n"
    book, told = settings(text, ("train.yaml", yaml))
    assert book.count("train.max_seq_len") == 8192
    assert [one.value for one in book.all("config.disagreement")] == ["train.max_seq_len"]
    notice = next(notice for notice in told.notices if notice.code == "config.disagreement")
    assert all(word in notice.message.en for word in ("sequence_len", "2048", "8192", "job.log:8", "train.yaml"))
    assert notice.witness is not None and (notice.witness.source, notice.witness.line) == ("train.yaml", 3)


def test_agreement_is_silent() -> None:
    """What log and file both say is said once."""
    book, told = settings(AXOLOTL, ("train.yaml", "base_model: NousResearch/Llama-3.2-1B\nmicro_batch_size: 4\nsequence_len: 8192\n"))
    assert "config.disagreement" not in book
    assert not [notice for notice in told.notices if notice.code == "config.disagreement"]


def test_engines_that_differ_settle_nothing() -> None:
    """A reference model's engine prints a configuration of its own: which is the trainer's nobody can tell."""
    other = ENGINE.replace('"stage": 3', '"stage": 0').replace("stage=3", "stage=0")
    book, _ = settings(f"{other}\n{ENGINE}")
    assert "zero.stage" not in book
    assert book.count("train.micro_batch_size") == 2


def test_an_engine_that_lacks_a_key_differs_too() -> None:
    """Absent means the default: one engine that offloads beside one that says nothing of it leaves the matter open."""
    other = ENGINE.partition('        "offload_optimizer"')[0].rstrip(",\n ") + "\n    }\n}"
    other = other.replace("offload_optimizer=DeepSpeedZeroOffloadOptimizerConfig(device='cpu', pin_memory=True) ", "")
    book, _ = settings(f"{other}\n{ENGINE}")
    assert book.count("zero.stage") == 3
    assert "zero.offload_optimizer" not in book


def test_a_dump_is_no_document_to_edit() -> None:
    """Edits are made in files and commands; nobody edits a log."""
    assert settings(ARGUMENTS)[1].documents == ()


def test_a_trainer_that_extends_transformers_reads_its_own_keys() -> None:
    """LLaMA-Factory prints transformers' arguments, and switches checkpointing on by itself whatever these say."""
    text = ARGUMENTS.replace("gradient_checkpointing=True", "gradient_checkpointing=False")
    book, _ = settings(text, ("sft.yaml", "stage: sft\ncutoff_len: 2048\nfinetuning_type: lora\nmodel_name_or_path: Qwen/Qwen2.5-7B\n"))
    assert book.word("train.gradient_checkpointing") == "enabled"
    assert book.word("train.framework") == "llamafactory"


@for_each(
    "text",
    [
        'raise ValueError("TrainingArguments(bf16=True)")',
        "    args = TrainingArguments(bf16=True, per_device_train_batch_size=64)",
        "from x import TrainingArguments(",
        "Namespace(a=1",
        "config:\n{",
        "Namespace()",
    ],
)
def test_source_and_fragments_are_no_dump(text: str) -> None:
    """Code in a traceback sets nothing; a text without its end is not believed."""
    book, _ = settings(text)
    assert "train.micro_batch_size" not in book and "train.precision" not in book


def test_a_critic_of_its_own() -> None:
    """The settings of a process that does not train the policy are not the trainer's."""
    lines = "\n".join(f"(CriticModelRayActor pid=7) {line}" for line in ENGINE.split("\n"))
    assert "zero.stage" not in settings(lines)[0]


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True).filter(lambda name: name not in ("none", "null", "true", "false"))
SCALARS = st.one_of(st.integers(-(10**9), 10**9), st.booleans(), st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20))
TREES = st.dictionaries(NAMES, st.recursive(SCALARS, lambda inner: st.dictionaries(NAMES, inner, min_size=1, max_size=4), max_leaves=12))


def flat(tree: object, path: str = "") -> dict[str, object]:
    if not isinstance(tree, dict):
        return {path: tree}
    return {key: value for name, inner in tree.items() for key, value in flat(inner, f"{path}.{name}" if path else name).items()}


@given(TREES, st.sampled_from(["json", "python", "call"]))
def test_what_is_printed_is_what_is_read(tree: dict[str, object], form: str) -> None:
    """JSON, a dict and a call: every scalar comes back under its path, whatever text it holds."""
    if form == "json":
        text = json.dumps(tree, indent=2)
    elif form == "python":
        text = repr(tree)
    else:
        text = f"Namespace({', '.join(f'{name}={value!r}' for name, value in tree.items())})"
    read = {leaf.key: leaf.text for leaf in Reader(text).bracket_leaves() if leaf.shape == "scalar"}
    wanted = {
        key: value if isinstance(value, str) else json.dumps(value) if form == "json" else repr(value) for key, value in flat(tree).items()
    }
    escaped = {key for key, value in wanted.items() if "\\" in value}
    assert {key: value for key, value in read.items() if key not in escaped} == {
        key: value for key, value in wanted.items() if key not in escaped
    }


@given(st.text(max_size=400))
def test_any_text_is_read_without_harm(text: str) -> None:
    """Whatever stands in a log, reading it raises nothing but what the caller expects."""
    from diagnose.adapters.formats.config_value import Unreadable

    for read in (Reader(f"X({text}").bracket_leaves, Reader(text).row_leaves, lambda: parse_overrides(text)):
        try:
            read()
        except Unreadable:
            pass


@for_each("piece", ["Namespace(", "{'a':", "[(", "a=<b.", "x ..... {", '"', "config:\n{", " arguments ----\n  a ... b"])
def test_hostile_dumps_take_bounded_time(piece: str) -> None:
    """A quarter of a megabyte of beginnings without an end is given up soon."""
    with within(10):
        settings(piece * (250_000 // len(piece)))


def test_a_line_of_escaped_quotes_is_cheap() -> None:
    """A log kept as JSON has them by the thousand: none begins a text in quotes, so that none is searched for its end."""
    with within(2):
        settings("Namespace(" + "\\'" * 60_000)
