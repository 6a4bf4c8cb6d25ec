"""torchtune, torchtitan and Axolotl: what their tables need of the engine, and the traps of each."""

from __future__ import annotations

from typing import Any

import pytest
from collected import for_each

from diagnose.adapters import config_reader
from diagnose.adapters.formats.settings import ConfigSource, Settings
from diagnose.facts import Fact, FactBook, Value, Witness
from diagnose.parse.model.reading import Reading
from diagnose.plan.edits import knob_edits
from diagnose.plan.patch import patching
from diagnose.units import Version

TUNE = "model:\n  _component_: torchtune.models.llama3_1.{builder}\nbatch_size: 2\n"
AXOLOTL = "base_model: a/b\ndatasets:\n  - {path: d, type: t}\nsequence_len: 8\nmicro_batch_size: 1\n"


def read(*files: tuple[str, str], **versions: str) -> Settings:
    known = FactBook().learn(Fact(f"version.{name}", Version(text), "log", Witness("log")) for name, text in versions.items())
    return config_reader.read([ConfigSource(name, text.encode()) for name, text in files], Reading(), known)


def value(told: Settings, name: str) -> Value:
    return FactBook(told.facts).value(name)


def patched(text: str, changes: dict[str, Value], name: str = "c.yaml", **versions: str) -> str:
    told = read((name, text), **versions)
    book = FactBook(told.facts).learn(Fact(f"version.{key}", Version(release), "log", Witness("log")) for key, release in versions.items())
    edits = knob_edits.edits(told.documents, book, changes)
    assert edits
    return patching.texts(told.documents, edits)[name]


# -- torchtune


@pytest.mark.parametrize(
    ("builder", "finetuning", "quantization"),
    [("llama3_1_8b", "full", "none"), ("lora_llama3_1_8b", "lora", "none"), ("qlora_llama3_1_8b", "lora", "nf4_double")],
)
def test_the_builder_says_what_is_trained(builder: str, finetuning: str, quantization: str) -> None:
    told = read(("c.yaml", TUNE.format(builder=builder)))
    assert [value(told, name) for name in ("train.finetuning", "model.quantization", "model.path")] == [
        finetuning,
        quantization,
        "meta-llama/Llama-3.1-8B",
    ]


def test_a_builder_that_nobody_knows_leaves_the_folder_to_name_the_model() -> None:
    text = TUNE.format(builder="mine") + "checkpointer: {checkpoint_dir: /data/Qwen2.5-7B}\n"
    assert value(read(("c.yaml", text)), "model.path") == "/data/Qwen2.5-7B"


def test_switches_beside_a_list_add_to_it() -> None:
    text = TUNE.format(builder="lora_llama3_1_8b").replace(
        "batch", "  lora_attn_modules: [q_proj, output_proj]\n  apply_lora_to_mlp: {}\nbatch"
    )
    assert value(read(("c.yaml", text.format("True"))), "lora.targets") == "q_proj,o_proj,gate_proj,up_proj,down_proj"
    assert value(read(("c.yaml", text.format("False"))), "lora.targets") == "q_proj,o_proj"


@for_each(
    "command, entry, world",
    [
        ("tune run --nproc_per_node 4 full_finetune_distributed --config a.yaml", "tune run full_finetune_distributed", 4),
        ("tune run --standalone --nnodes 2 --nproc-per-node=4 lora_dpo_distributed --config a.yaml", "tune run lora_dpo_distributed", 8),
        ("tune run lora_finetune_single_device --config a.yaml", "tune run lora_finetune_single_device", 1),
        (
            "srun tune run --nnodes 1 --nproc_per_node 2 dev/grpo_full_finetune_distributed --config a",
            "dev/grpo_full_finetune_distributed",
            2,
        ),
    ],
)
def test_tune_takes_the_launchers_options_before_the_recipe(command: str, entry: str, world: int) -> None:
    told = read(("run.sh", command))
    assert value(told, "train.framework") == "torchtune"
    assert entry in str(value(told, "train.entry")) and value(told, "parallel.world") == world


def test_the_longer_recipes_name_is_not_taken_for_the_shorter() -> None:
    told = read(("run.sh", "tune run ppo_full_finetune_single_device --config a.yaml"))
    assert (value(told, "train.stage"), value(told, "train.ref_model")) == ("ppo", "copy")


def test_what_the_command_line_takes_out_says_nothing() -> None:
    """`~key` removes a key of the file, and the recipe's own default holds."""
    file = TUNE.format(builder="llama3_1_8b") + "enable_activation_checkpointing: True\n"
    command = "tune run full_finetune_single_device --config a.yaml {}\n"
    assert value(read(("a.yaml", file), ("r.sh", command.format(""))), "train.gradient_checkpointing") == "enabled"
    gone = read(("a.yaml", file), ("r.sh", command.format("~enable_activation_checkpointing")))
    assert value(gone, "train.gradient_checkpointing") == "disabled"


def test_a_shipped_config_is_not_guessed() -> None:
    """Its values are unknown here: no default of the recipe may stand for them."""
    told = read(("r.sh", "tune run full_finetune_single_device --config llama3_1/8B_full_single_device"))
    assert value(told, "train.gradient_checkpointing") is None
    assert [notice.code for notice in told.notices] == ["config.not_given"]
    given = read(
        ("8B_full_single_device.yaml", TUNE.format(builder="llama3_1_8b")), ("r.sh", "tune run x --config llama3_1/8B_full_single_device")
    )
    assert not given.notices and value(given, "train.gradient_checkpointing") == "disabled"


def test_another_optimizer_loses_what_only_the_old_one_takes() -> None:
    text = TUNE.format(builder="llama3_1_8b") + "optimizer:\n  _component_: torch.optim.AdamW\n  fused: True\n  lr: 1\n"
    new = patched(text, {"train.optimizer": "paged_adamw_8bit"})
    assert "bitsandbytes.optim.PagedAdamW8bit" in new and "fused" not in new and "lr: 1" in new


def test_torchtune_sets_the_allocator_only_after_its_last_release() -> None:
    text = TUNE.format(builder="llama3_1_8b")
    assert value(read(("c.yaml", text), torchtune="0.6.1"), "alloc.expandable_segments") is None


# -- torchtitan


def test_a_variable_names_the_configuration() -> None:
    toml = '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nseq_len = 4\n'
    told = read(("c.toml", toml), ("r.sh", "export CONFIG_FILE=conf/c.toml\nNGPU=4 ./run_train.sh --training.seq_len 8\n"))
    assert (value(told, "train.framework"), value(told, "train.max_seq_len"), value(told, "parallel.world")) == ("torchtitan", 8, 4)
    assert all(notice.level == "info" for notice in told.notices)
    missing = read(("r.sh", "CONFIG_FILE=conf/c.toml ./run_train.sh --training.seq_len 8\n"))
    assert [notice.code for notice in missing.notices] == ["config.not_given"]
    assert value(missing, "train.micro_batch_size") is None


def test_a_script_of_that_name_alone_is_nobodys() -> None:
    assert value(read(("r.sh", "bash run_train.sh --lr 1\n")), "train.framework") is None


@pytest.mark.parametrize(
    ("flag", "expected"),
    [("--training.enable_cpu_offload", True), ("--training.no-enable-cpu-offload", False), ("--training.seq_len 4", None)],
)
def test_a_switch_has_two_flags(flag: str, expected: bool | None) -> None:
    told = read(("r.sh", f"torchrun --nproc_per_node 2 -m torchtitan.train --job.config_file a.toml {flag}\n"))
    assert value(told, "fsdp.offload") is expected


def test_the_same_flavor_of_another_model_is_another_model() -> None:
    for name, path in (("llama3", "meta-llama/Llama-3.1-8B"), ("qwen3", "Qwen/Qwen3-8B"), ("mine", None)):
        assert value(read(("c.toml", f'[model]\nname = "{name}"\nflavor = "8B"\n')), "model.path") == path


def test_a_misspelt_key_is_named_and_keys_of_ones_own_are_not() -> None:
    text = '[training]\nlocal_batchsize = 4\n[mine]\nx = 1\n[job]\ndump_folder = "o"\n'
    notices = read(("c.toml", text)).notices
    assert "training.local_batch_size" in notices[0].message.en and notices[0].witness is not None and notices[0].witness.line == 2
    assert not read(("c.toml", text + 'custom_config_module = "mine.config"\n')).notices


@pytest.mark.parametrize("module", ["torchtitan.config", "mine.config"])
def test_classes_with_common_names_count_where_they_are_imported(module: str) -> None:
    text = f"from {module} import TrainingConfig\nt = TrainingConfig(max_context_length=4096)\n"
    told = read(("c.py", text))
    assert value(told, "train.framework") == ("torchtitan" if module.startswith("torchtitan") else None)


# -- Axolotl


@for_each(
    "lines, kernel, ignored",
    [
        ("plugins: [axolotl.integrations.liger.LigerPlugin]\nliger_fused_linear_cross_entropy: true\n", "liger", None),
        ("liger_fused_linear_cross_entropy: true\n", "none", "liger_fused_linear_cross_entropy"),
        ("plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\n", "cut_cross_entropy", None),
        ("plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\ncut_cross_entropy: false\n", "none", None),
        ("cut_cross_entropy: true\n", "none", "cut_cross_entropy"),
        ("chunked_cross_entropy: true\n", "chunked", None),
    ],
)
def test_a_kernel_without_its_plugin_is_not_there(lines: str, kernel: str, ignored: str | None) -> None:
    told = read(("c.yaml", AXOLOTL + lines))
    assert (value(told, "train.loss_kernel"), value(told, "config.ignored_key")) == (kernel, ignored)


def test_a_kernel_in_vain_is_mended_by_its_plugin() -> None:
    new = patched(AXOLOTL + "cut_cross_entropy: true\n", {"train.loss_kernel": "cut_cross_entropy"})
    assert value(read(("c.yaml", new)), "train.loss_kernel") == "cut_cross_entropy"


@pytest.mark.parametrize(("release", "line"), [("0.10.1", "flash_attention: true"), ("0.18.0", "attn_implementation: flash_attention_2")])
def test_attention_is_switched_on_as_the_release_has_it(release: str, line: str) -> None:
    assert line in patched(AXOLOTL, {"model.attention": "flash_attention_2"}, axolotl=release)


def test_an_attention_that_we_do_not_know_is_unknown_and_no_default() -> None:
    told: Any = read(("c.yaml", AXOLOTL + "attn_implementation: kernels-community/some-kernel\n"))
    assert value(told, "model.attention") is None and not told.notices


@for_each(
    "lines, version, sharding, offload",
    [
        ("fsdp: [full_shard, auto_wrap, offload]\n", 1, "full_shard", True),
        ("fsdp_config: {fsdp_offload_params: true, fsdp_sharding_strategy: SHARD_GRAD_OP}\n", 1, "shard_grad_op", True),
        ("fsdp_version: 2\nfsdp_config: {reshard_after_forward: false}\n", 2, "shard_grad_op", False),
        ("fsdp_version: 2\ndp_replicate_size: 2\nfsdp_config: {offload_params: true}\n", 2, "hybrid_shard", True),
        ("", None, "none", False),
    ],
)
def test_both_generations_of_fsdp(lines: str, version: int | None, sharding: str, offload: bool) -> None:
    told = read(("c.yaml", AXOLOTL + lines))
    assert [value(told, f"fsdp.{name}") for name in ("version", "sharding", "offload")] == [version, sharding, offload]


def test_fsdp_on_the_command_line_takes_offload_as_a_word() -> None:
    command = 'torchrun --nproc_per_node 2 train.py --model_name_or_path a/b --output_dir o --fsdp "full_shard auto_wrap"\n'
    told = read(("a.sh", command))
    assert value(told, "fsdp.offload") is False
    edits = knob_edits.edits(told.documents, FactBook(told.facts), {"fsdp.offload": True})
    assert edits is not None
    assert patching.texts(told.documents, edits)["a.sh"].endswith('--fsdp "full_shard auto_wrap offload"\n')
    assert value(read(("a.sh", command.replace("wrap", "wrap offload"))), "fsdp.offload") is True


def test_the_shipped_zero2_keeps_the_optimizer_in_host_memory() -> None:
    told = read(("c.yaml", AXOLOTL + "deepspeed: deepspeed_configs/zero2.json\n"))
    assert (value(told, "zero.stage"), value(told, "zero.offload_optimizer")) == (2, "cpu")
