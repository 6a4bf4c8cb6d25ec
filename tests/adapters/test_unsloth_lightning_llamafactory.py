"""LLaMA-Factory's two engines, Unsloth over TRL, Lightning and LitGPT: told apart, and read as they read themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping

from collected import for_each
from hypothesis import given
from hypothesis import strategies as st
from pace import within

from diagnose.adapters import config_reader
from diagnose.adapters.documents.open_config import open_document
from diagnose.adapters.formats.settings import ConfigSource, Settings
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.config_kinds import ambiguous_kinds, python_classes
from diagnose.facts import Fact, FactBook, Value, Witness
from diagnose.parse.model.reading import Reading
from diagnose.plan.edits import knob_edits
from diagnose.plan.patch import patching
from diagnose.units import Version

V1 = "model: x/y\nmodel_class: llm\ntrain_dataset: d\nmicro_batch_size: 2\n"
LOADED = "from unsloth import FastLanguageModel\nmodel, t = FastLanguageModel.from_pretrained('a/b'{})\n"


def read(files: Mapping[str, str], versions: Mapping[str, str] | None = None) -> Settings:
    book = FactBook(Fact(f"version.{name}", Version(text), "log", Witness("log")) for name, text in (versions or {}).items())
    return config_reader.read([ConfigSource(name, text.encode()) for name, text in files.items()], Reading(), book)


def value(told: Settings, name: str) -> Value:
    return FactBook(told.facts).value(name)


def ignored(told: Settings) -> set[Value]:
    return {fact.value for fact in told.facts if fact.name == "config.ignored_key"}


# -- which of them it is


@for_each(
    "text, kind",
    [
        ("llamafactory-cli train --stage sft --template x", "llamafactory"),
        ("USE_V1=0 llamafactory-cli train --stage sft --template x", "llamafactory"),
        ("USE_V1=1 llamafactory-cli train --model x --train_dataset d", "llamafactory_v1"),
        ("export USE_V1=true\nlmf train --model x --train_dataset d", "llamafactory_v1"),
        ("llamafactory-cli sft --model x --train_dataset d", "llamafactory_v1"),
        ("torchrun --nproc_per_node 2 src/llamafactory/v1/launcher.py dpo c.yaml", "llamafactory_v1"),
        ("torchrun --nproc_per_node 2 src/llamafactory/launcher.py c.yaml", "llamafactory"),
        ("python unsloth-cli.py --model_name x --r 8", "unsloth"),
        ("trl sft --model_name_or_path x --dataset_name d", "trl"),
        ("python main.py fit --trainer.devices 4 --trainer.precision bf16-mixed", "lightning"),
        ("litgpt finetune_lora a/b --train.micro_batch_size 1", "litgpt"),
        ("litgpt pretrain pythia-14m --devices 2", "litgpt"),
    ],
)
def test_a_command_starts_the_right_engine(text: str, kind: str) -> None:
    """USE_V1 gives the same program another engine with other keys and defaults."""
    assert value(read({"run.sh": text + "\n"}), "train.framework") == kind


@for_each(
    "text, kind",
    [
        (V1, "llamafactory_v1"),
        ("dist_config:\n  name: fsdp2\n", "llamafactory_v1"),
        ("batching_strategy: padding_free\n", "llamafactory_v1"),
        ("cutoff_len: 4\n", "llamafactory"),
        ("stage: sft\ncutoff_len: 4\ntemplate: x\n", "llamafactory"),
        ("pref_beta: 0.1\n", "llamafactory"),
        ("base_model: a/b\ndatasets:\n  - path: d\nmicro_batch_size: 1\ncutoff_len: 4\n", "axolotl"),
        ("trainer:\n  accumulate_grad_batches: 4\n", "lightning"),
        ("trainer:\n  nnodes: 1\n  n_gpus_per_node: 8\nactor_rollout_ref:\n  model:\n    path: x\ndata:\n  train_batch_size: 8\n", "verl"),
        ("lora_query: true\nlora_r: 8\n", "litgpt"),
        ("checkpoint_dir: a/b\ntrain:\n  max_seq_length: 512\n", "litgpt"),
    ],
)
def test_a_file_is_told_by_its_keys(text: str, kind: str) -> None:
    assert value(read({"c.yaml": text}), "train.framework") == kind


@for_each(
    "text, kind",
    [
        (LOADED.format(""), "unsloth"),
        ("from transformers import Trainer, TrainingArguments\nt = Trainer('a/b', TrainingArguments('o'))\n", "transformers"),
        ("from trl import SFTConfig\na = SFTConfig('o')\n", "trl"),
        ("import lightning as L\nt = L.Trainer(devices=2)\n", "lightning"),
        ("import pytorch_lightning as pl\nt = pl.Trainer(gpus=2)\n", "lightning"),
        ("import os, torch, lightning as L\nt = L.Trainer(devices=2)\n", "lightning"),
        ("from somewhere import Trainer\nt = Trainer(devices=2)\n", None),
        ("import os  # , lightning\nfrom somewhere import Trainer\nt = Trainer(devices=2)\n", None),
    ],
)
def test_a_script_is_told_by_what_it_imports_and_calls(text: str, kind: str | None) -> None:
    """`Trainer` is a name of several libraries, and Unsloth's scripts call TRL's classes."""
    assert value(read({"t.py": text}), "train.framework") == kind


def test_many_names_in_one_import_are_read_at_once() -> None:
    """Twice the time for every further name would be minutes here."""
    with within(1):
        python_classes("from typing import " + "A, " * 22 + "B\n")


@given(st.sampled_from(sorted(framework_tables.table("llamafactory_v1").known | framework_tables.table("unsloth").known)))
def test_no_single_key_that_others_share_speaks_for_an_engine(key: str) -> None:
    """Rank 0 is known by its own signs: one key that another trainer knows as well is that trainer's."""
    kind = value(read({"c.yaml": f"{key}: 1\n"}), "train.framework")
    others = [
        name for name in framework_tables.names() if framework_tables.table(name).trainer and not framework_tables.by_signs_only(name)
    ]
    if any(entry.key == key for name in others for entry in framework_tables.table(name).keys):
        assert kind not in ("llamafactory_v1", "unsloth")


@for_each(
    "command, text, kind",
    [
        ("USE_V1=1 llamafactory-cli train c.yaml", "cutoff_len: 2048\nbf16: true\n", "llamafactory_v1"),
        ("llamafactory-cli train c.yaml", "output_dir: o\nper_device_train_batch_size: 2\n", "llamafactory"),
        ("llamafactory-cli train c.yaml", "nothing: known\nat: all\n", "llamafactory"),
        ("llamafactory-cli train --deepspeed c.yaml --stage sft", "zero_optimization:\n  stage: 2\n", "llamafactory"),
    ],
)
def test_a_file_that_a_command_takes_is_that_commands(command: str, text: str, kind: str) -> None:
    """Few keys tell little; the command that takes the file tells all."""
    told = read({"c.yaml": text, "run.sh": command + "\n"})
    frameworks = {fact.value for fact in told.facts if fact.name == "train.framework"}
    assert frameworks == {kind}
    assert all(notice.code != "config.unknown_kind" for notice in told.notices)


KEYS = sorted({key for name in framework_tables.names() for key in framework_tables.table(name).known})


@given(st.sampled_from(KEYS))
def test_one_key_is_never_taken_for_another_frameworks(key: str) -> None:
    """One key speaks for a framework that has it, and for one of several only where it is a sign of that one; else all are named."""
    text = f"{json.dumps(key)}: 1\n" if "." not in key else "".join(f"{'  ' * depth}{word}:\n" for depth, word in enumerate(key.split(".")))
    told = read({"c.yaml": text})
    kind = value(told, "train.framework")
    leaves = open_document(ConfigSource("c.yaml", text.encode())).leaves
    if kind is not None:
        assert any(leaf.key in framework_tables.table(str(kind)).known for leaf in leaves)
        others = [name for name in ambiguous_kinds(leaves) if name != kind]
        assert others == []


@for_each("key", ["bf16: true", "micro_batch_size: 2", "gradient_accumulation_steps: 8", "num_processes: 8"])
def test_one_key_of_many_frameworks_is_nobodys_until_the_job_tells(key: str) -> None:
    """`bf16: true` alone names no framework; beside a command or a log of Axolotl it is Axolotl's."""
    alone = read({"c.yaml": f"{key}\n"})
    assert value(alone, "train.framework") is None
    [notice] = alone.notices
    assert notice.code == "config.unknown_kind" and ("axolotl" in notice.message.en or "accelerate" in notice.message.en)
    if not key.startswith("num"):
        beside = read({"c.yaml": f"{key}\n", "run.sh": "axolotl train other.yml\n"})
        assert (value(beside, "train.framework"), beside.inputs[0].kind) == ("axolotl", "axolotl")
        assert [one.code for one in beside.notices] == ["config.not_given"]  # other.yml


# -- LLaMA-Factory


def test_the_launcher_of_either_engine_takes_every_visible_card() -> None:
    for command in ("llamafactory-cli train", "USE_V1=1 llamafactory-cli train", "llamafactory-cli dpo"):
        assert value(read({"r.sh": f"CUDA_VISIBLE_DEVICES=0,1 {command} c.yaml\n"}), "parallel.world") == 2


@for_each(
    "more, knob, expected, vain",
    [
        ("stage: dpo\nenable_liger_kernel: true\n", "train.loss_kernel", "none", "enable_liger_kernel"),
        ("stage: sft\nenable_liger_kernel: true\n", "train.loss_kernel", "liger", None),
        ("enable_liger_kernel: true\n", "train.loss_kernel", "liger", None),
        ("quantization_method: hqq\n", "model.quantization", "none", "quantization_method"),
        ("quantization_bit: 4\n", "model.quantization", "nf4_double", None),
        ("quantization_bit: 4\ndouble_quantization: false\n", "model.quantization", "nf4", None),
        ("quantization_bit: 4\nquantization_type: fp4\n", "model.quantization", "fp4", None),
        ("quantization_bit: 8\ndouble_quantization: false\n", "model.quantization", "int8", None),
        ("double_quantization: true\n", "model.quantization", "none", "double_quantization"),
        ("stage: rm\npacking: true\n", "train.packing", False, "packing"),
        ("neat_packing: true\n", "train.packing", True, None),
        ("disable_gradient_checkpointing: true\nuse_unsloth_gc: true\n", "train.activation_offload", False, "use_unsloth_gc"),
        ("use_cache: true\n", "train.gradient_checkpointing", "enabled", "use_cache"),
        ("pref_loss: simpo\nstage: dpo\nref_model: a/b\n", "train.ref_model", "none", "ref_model"),
    ],
)
def test_keys_that_exist_and_do_nothing_here(more: str, knob: str, expected: Value, vain: str | None) -> None:
    told = read({"c.yaml": f"finetuning_type: lora\ntemplate: x\n{more}"}, {"llamafactory": "0.9.3"})
    assert value(told, knob) == expected
    assert ignored(told) == ({vain} if vain else set())


@for_each(
    "more, knob, expected",
    [
        ("", "train.precision", "fp32"),
        ("dist_config: {name: fsdp2}\n", "train.precision", "bf16"),
        ("dist_config: {name: fsdp2}\nbf16: false\n", "train.precision", "fp32"),
        ("dist_config: {name: deepspeed, config_file: d.json}\n", "train.precision", None),
        ("peft_config: {name: lora}\n", "train.precision", None),
        ("", "train.gradient_accumulation", 1),
        ("global_batch_size: 8\n", "train.gradient_accumulation", None),
        ("batching_strategy: dynamic_batching\ncutoff_len: 1024\n", "train.token_budget", 2048),
        ("dist_config: {name: fsdp2, reshard_after_forward: false}\n", "fsdp.sharding", "shard_grad_op"),
        ("peft_config: {name: freeze}\n", "lora.rank", None),
        ("quant_config: {name: bnb}\npeft_config: {name: lora}\n", "model.quantization", "nf4_double"),
        ("quant_config: {name: auto}\npeft_config: {name: lora}\n", "model.quantization", "none"),
        ("kernel_config: {name: liger_kernel}\n", "train.loss_kernel", "none"),
    ],
)
def test_the_v1_engine_has_values_of_its_own(more: str, knob: str, expected: Value) -> None:
    assert value(read({"c.yaml": V1 + more}), knob) == expected


def test_a_loss_without_a_reference_wins_over_the_command() -> None:
    told = read({"c.yaml": V1 + "pref_loss: orpo\n", "run.sh": "llamafactory-cli dpo c.yaml\n"})
    assert (value(told, "train.stage"), value(told, "train.ref_model")) == ("orpo", "none")


# -- Unsloth


@for_each(
    "more, knob, expected",
    [
        ("", "model.quantization", "nf4_double"),
        (", load_in_4bit=False", "model.quantization", "none"),
        (", load_in_4bit=False, load_in_8bit=True", "model.quantization", "int8"),
        (", load_in_16bit=True", "model.quantization", "none"),
        (", full_finetuning=True", "model.quantization", "none"),
        (", full_finetuning=True", "train.finetuning", "full"),
        ("", "train.finetuning", None),
        ("", "train.gradient_checkpointing", "offload"),
        (", use_gradient_checkpointing=False", "train.gradient_checkpointing", "disabled"),
        (", fast_inference=True", "rollout.gpu_memory_utilization", 0.5),
    ],
)
def test_unsloth_has_defaults_of_its_own(more: str, knob: str, expected: Value) -> None:
    """Advice to quantise or to recompute is idle where the loader does so unasked."""
    assert value(read({"t.py": LOADED.format(more)}), knob) == expected


def test_checkpointing_of_an_adapter_is_that_of_the_release() -> None:
    script = LOADED.format("") + "model = FastLanguageModel.get_peft_model(model, r=4)\n"
    found = {
        release: value(read({"t.py": script}, {"unsloth": release}), "train.gradient_checkpointing")
        for release in ("2025.3.19", "2025.9.6")
    }
    assert found == {"2025.3.19": "enabled", "2025.9.6": "offload"}


def test_adapters_alone_show_whose_model_it_is() -> None:
    """People paste the two calls that they changed: the adapters and the trainer."""
    script = "model = FastLanguageModel.get_peft_model(model, r=4, use_gradient_checkpointing='unsloth')\nt = DPOTrainer(model=model)\n"
    assert value(read({"t.py": script}), "train.gradient_checkpointing") == "offload"


def test_the_length_is_the_loaders_in_sft_and_the_configs_in_dpo() -> None:
    loaded = LOADED.format(", max_seq_length=2048")
    sft = read({"t.py": f"{loaded}from trl import SFTConfig\na = SFTConfig(max_length=512)\n"})
    dpo = read({"t.py": f"{loaded}from trl import DPOConfig\na = DPOConfig(max_length=512)\n"})
    assert (value(sft, "train.max_seq_len"), ignored(sft)) == (2048, {"max_length"})
    assert (value(dpo, "train.max_seq_len"), ignored(dpo)) == (512, set())


# -- Lightning


@for_each(
    "word, stage, optimizer, params, sharding",
    [
        ("auto", 0, "none", "none", "none"),
        ("ddp_spawn", 0, "none", "none", "none"),
        ("fsdp", 0, "none", "none", "full_shard"),
        ("deepspeed", 2, "none", "none", "none"),
        ("deepspeed_stage_1", 1, "none", "none", "none"),
        ("deepspeed_stage_2_offload", 2, "cpu", "none", "none"),
        ("deepspeed_stage_3", 3, "none", "none", "none"),
        ("deepspeed_stage_3_offload", 3, "cpu", "cpu", "none"),
        ("deepspeed_stage_3_offload_nvme", 3, "cpu", "nvme", "none"),
    ],
)
def test_a_strategys_name_says_how_it_shards(word: str, stage: int, optimizer: str, params: str, sharding: str) -> None:
    files = (
        {"c.yaml": f"trainer:\n  accelerator: gpu\n  strategy: {word}\n"},
        {"t.py": f"import lightning as L\nt = L.Trainer(strategy='{word}')\n"},
    )
    for told in map(read, files):
        names = ("zero.stage", "zero.offload_optimizer", "zero.offload_param", "fsdp.sharding")
        assert tuple(value(told, name) for name in names) == (stage, optimizer, params, sharding)


@for_each(
    "devices, nodes, world",
    [
        ("4", "", 4),
        ("4", "2", 8),
        ("[0, 2]", "", 2),
        ("'0,1,2'", "", 3),
        ("[3]", "", 1),
        ("auto", "", None),
        ("-1", "", None),
        ("'8'", "1", 8),
    ],
)
def test_devices_are_a_number_or_a_list(devices: str, nodes: str, world: int | None) -> None:
    more = f"  num_nodes: {nodes}\n" if nodes else ""
    assert value(read({"c.yaml": f"trainer:\n  accelerator: gpu\n  devices: {devices}\n{more}"}), "parallel.world") == world


@given(
    st.sampled_from(["deepspeed_stage_2", "deepspeed_stage_3", "deepspeed_stage_3_offload", "ddp", "fsdp"]),
    st.sampled_from([1, 2, 3]),
    st.sampled_from(["none", "cpu"]),
)
def test_a_strategys_name_is_exchanged_for_another(word: str, stage: int, offload: str) -> None:
    """Stage and offload are one word: what an edit writes must mean what was asked, and nothing but the word may change."""
    before = f"trainer:\n  accelerator: gpu # kept\n  strategy: {word}   # mine\n  devices: 4\n"
    told = read({"c.yaml": before})
    for knob, asked in (("zero.stage", stage), ("zero.offload_optimizer", offload)):
        edits = knob_edits.edits(told.documents, FactBook(told.facts), {knob: asked})
        if not edits:
            continue
        after = patching.texts(told.documents, edits)["c.yaml"]
        assert value(read({"c.yaml": after}), knob) == asked
        assert after.startswith("trainer:\n  accelerator: gpu # kept\n  strategy: ") and after.endswith("   # mine\n  devices: 4\n")


# -- LitGPT


@for_each(
    "command, checkpointing, sharding",
    [
        ("finetune_lora a/b", "disabled", "none"),
        ("finetune_lora a/b --devices 2", "enabled", "full_shard"),
        ("finetune_full a/b --devices 8", "enabled", "full_shard"),
        ("pretrain pythia --devices 8", "disabled", "hybrid_shard"),
    ],
)
def test_litgpt_recomputes_only_when_it_fine_tunes_on_several_cards(command: str, checkpointing: str, sharding: str) -> None:
    told = read({"r.sh": f"litgpt {command}\n"})
    assert (value(told, "train.gradient_checkpointing"), value(told, "fsdp.sharding")) == (checkpointing, sharding)


def test_the_argument_without_a_name_is_the_model() -> None:
    told = read({"r.sh": "litgpt finetune_lora checkpoints/microsoft/phi-2 --devices 1\n"})
    assert value(told, "model.path") == "checkpoints/microsoft/phi-2"
    named = read({"r.sh": "litgpt finetune_lora x --checkpoint_dir a/b\n"})
    assert value(named, "model.path") == "a/b"
