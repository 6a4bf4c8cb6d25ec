"""Every edit works: keys only where the published releases declare them, options only for programs that take them, limits kept."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from collected import for_each

from diagnose import rule_files
from diagnose.adapters import config_reader
from diagnose.adapters.formats.settings import ConfigSource, Settings
from diagnose.adapters.python.script_arguments import declared_options
from diagnose.adapters.schema import declared_keys, framework_tables
from diagnose.adapters.schema.declared_keys import Use
from diagnose.facts import Fact, FactBook, Value, Witness
from diagnose.parse.model.reading import Reading
from diagnose.plan.edits import knob_edits
from diagnose.plan.edits.key_spelling import spelled_key
from diagnose.plan.edits.setting_conflicts import broken_constraints, constraint_text
from diagnose.plan.edits.verified_edits import _doubt
from diagnose.plan.patch import patching
from diagnose.release_spans import ReleaseSpan
from diagnose.units import Version

RECORDS = sorted(rule_files.table("declared"))
#: The fewest keys that an entry point of any framework declares: a record with fewer was not read.
FEWEST = 10


def read(files: Mapping[str, str]) -> Settings:
    return config_reader.read([ConfigSource(name, text.encode()) for name, text in files.items()], Reading(), FactBook())


def keys(files: Mapping[str, str], changes: Mapping[str, Value], **versions: str) -> list[str] | None:
    """What the edits of these knobs set; None where there are none."""
    found = read(files)
    given = [Fact(f"version.{name}", Version(text), "given", Witness("option")) for name, text in versions.items()]
    edits = knob_edits.edits(found.documents, FactBook([*given, *found.facts]), changes)
    return None if edits is None else [f"{edit.key} {edit.to}".strip() for edit in edits]


def doubt(files: Mapping[str, str], changes: Mapping[str, Value]) -> str:
    """The phrase with which the edits of these knobs are said in words; "" where they are a patch."""
    found = read(files)
    book = FactBook(found.facts)
    edits = knob_edits.edits(found.documents, book, changes)
    assert edits
    return _doubt(edits, found.documents, book)


# -- releases of other libraries


@for_each(
    "text, knob, value, key, first, last",
    [
        ("SFTTrainer(model=m, args=TrainingArguments(output_dir='o', per_device_train_batch_size=4))", "train.gradient_checkpointing",
         "enabled", "gradient_checkpointing_kwargs", "4.35.0", "4.34.1"),
        ("m = AutoModelForCausalLM.from_pretrained('gpt2')\nTrainer(model=m, args=TrainingArguments('o'))", "model.attention",
         "flash_attention_2", "from_pretrained.attn_implementation", "4.36.0", "4.35.2"),
        ("m = AutoModelForCausalLM.from_pretrained('gpt2')\nm(m.generate()).loss.backward()", "model.attention", "flash_attention_2",
         "from_pretrained.attn_implementation", "4.36.0", "4.35.2"),
    ],
)  # fmt: skip
def test_a_key_of_transformers_is_added_from_its_release_on(text: str, knob: str, value: str, key: str, first: str, last: str) -> None:
    """Whichever library's script it stands in."""
    script = f"from transformers import *\nfrom trl import *\n{text}\n" if "SFT" in text else f"from transformers import *\n{text}\n"
    files, changes = {"train.py": script}, {knob: value}
    assert any(word.startswith(f"{key} ") for word in keys(files, changes, transformers=first) or ())
    assert not any(word.startswith(f"{key} ") for word in keys(files, changes, transformers=last) or ())


@for_each(
    "program, first, last",
    [("train_ppo_ray", "0.6.0", "0.5.9"), ("train_sft", "0.5.4", "0.5.3"), ("train_rm", "0.4.4", "0.4.3"), ("train_dpo", "0.4.4", "0.4.3")],
)
def test_ring_attention_is_added_from_the_release_of_the_program_on(program: str, first: str, last: str) -> None:
    """OpenRLHF's programs got it one after another."""
    script = f"deepspeed --module openrlhf.cli.{program} --pretrain a/b --micro_train_batch_size 2 --max_len 2048 --zero_stage 3\n"
    added = ["--ring_attn_size 2", "--packing_samples"]
    assert keys({"run.sh": script}, {"parallel.context": 2}, openrlhf=first) == added
    assert keys({"run.sh": script}, {"parallel.context": 2}, openrlhf=last) is None


@for_each(
    "text, changes",
    [
        ("lmf rm --model a/b --model_class cls --train_dataset d --micro_batch_size 4 --cutoff_len 1024", {"train.finetuning": "lora"}),
        ("lmf sft --model a/b --train_dataset d --micro_batch_size 4 --cutoff_len 1024", {"fsdp.sharding": "full_shard"}),
        ("trl sft --model_name_or_path a/b --dataset_name d --fsdp full_shard", {"fsdp.offload": True}),
    ],
)
def test_a_key_of_a_block_that_is_one_word_of_json_is_no_option(text: str, changes: Mapping[str, Value]) -> None:
    assert not any("." in key.partition(" ")[0] for key in keys({"run.sh": f"{text}\n"}, changes) or ())


def test_a_key_of_another_program_of_the_house_is_not_added() -> None:
    """NeMo 2's recipes have keys that NeMo 1's files lack; PaddleFormers has some that PaddleNLP lacks."""
    old = "name: megatron_gpt\nmodel:\n  mcore_gpt: true\n  micro_batch_size: 2\n  tensor_model_parallel_size: 4\n"
    assert not keys({"gpt.yaml": old}, {"zero.offload_optimizer": "cpu"})
    run = "python -m paddle.distributed.launch run_finetune.py --per_device_train_batch_size 2 --sharding stage1 --recompute 1\n"
    assert keys({"run.sh": run}, {"train.finetuning": "lora"}) == ["--lora true"]


def test_what_a_program_takes_no_option_for_is_not_added_to_its_command() -> None:
    """A command that names nothing but its configuration has options, too; a name in that configuration is none of them."""
    command = {"run.sh": "xtuner train llama2_7b_full_alpaca_e3\n"}
    assert not keys(command, {"parallel.context": 2})
    assert spelled_key(read(command).documents[0], "deepspeed") == "--deepspeed"


# -- the records


@for_each("name", RECORDS)
def test_a_record_is_whole(name: str) -> None:
    """Every column declares keys and every row names columns that are there, in the order of the releases."""
    found = declared_keys.record(name)
    assert found is not None
    for column in found.columns:
        assert sum(column.number in having for having in found.names.values()) >= FEWEST, column
    assert all(having and max(having) < len(found.columns) for having in found.names.values())
    releases = [column.release for column in found.columns]
    assert releases == sorted(releases)


@for_each("name", RECORDS)
def test_every_framework_can_still_be_edited(name: str) -> None:
    """Of the keys that a table may add, the newest release declares most at some entry point: else the record was misread."""
    found, table = declared_keys.record(name), framework_tables.table(name)
    assert found is not None
    last = [column.number for column in found.columns if column.release == found.columns[-1].release]
    end = found.columns[-1].release
    own = {
        key.key
        for key in table.keys
        if key.addable and not key.code and not key.cli and not key.struct and key.version == table.version
        and key.releases.covers(ReleaseSpan(end, end)) is not False and not key.key[:1].isupper() and "init_args" not in key.key
    }  # fmt: skip
    declared = {key for key in own if found.names.get(key, frozenset()) & set(last)}
    assert len(declared) >= 0.6 * len(own), sorted(own - declared)


# -- releases and entry points

GRPO = "from trl import GRPOConfig\nargs = GRPOConfig('o', bf16=True)\n"
SFT = GRPO.replace("GRPO", "SFT")


def test_a_key_of_another_entry_point_is_not_lent() -> None:
    assert keys({"t.py": SFT}, {"train.activation_offload": True}) == ["activation_offloading True"]
    assert keys({"t.py": GRPO}, {"train.activation_offload": True}) is None


def test_a_key_is_added_in_the_releases_that_have_it() -> None:
    script = {"t.sh": "openrlhf_run=1\npython -m openrlhf.cli.train_sft --pretrain a/b --max_len 64 --zero_stage 2\n"}
    assert keys(script, {"parallel.context": 2}, openrlhf="0.9.0") == ["--ring_attn_size 2", "--packing_samples"]


def test_what_stands_there_tells_the_release() -> None:
    key = next(key for key in framework_tables.table("swift").of("train.finetuning") if key.key == "train_type")
    assert declared_keys.declares("swift", key, Use(("swift sft",), {}, ("train_type", "model"))) is not False
    assert declared_keys.is_given_up("swift", key, Use(("swift sft",), {}, ("tuner_type",)))


def test_a_default_is_no_edit() -> None:
    assert keys({"t.py": SFT}, {"eval.enabled": False}) is None
    assert keys({"t.py": SFT.replace("bf16=True", "eval_strategy='steps'")}, {"eval.enabled": False}) == ["eval_strategy 'no'"]


# -- options of scripts


def test_a_script_that_is_given_says_what_it_takes() -> None:
    script = (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--per_device_train_batch_size', type=int)\n"
        "p.add_argument('--model_name_or_path')\np.add_argument('--gradient-checkpointing', action='store_true')\np.parse_args()\n"
    )
    assert declared_options(script) == {"per_device_train_batch_size": False, "model_name_or_path": False, "gradient_checkpointing": True}
    files = {"train.py": script, "run.sh": "python train.py --model_name_or_path a/b --per_device_train_batch_size 8\n"}
    assert keys(files, {"train.micro_batch_size": 2}) == ["--per_device_train_batch_size 2"]
    assert keys(files, {"train.gradient_checkpointing": "enabled"}) == ["--gradient_checkpointing"]
    assert keys(files, {"train.loss_kernel": "liger"}) is None


def test_a_script_that_was_not_given_is_asked_for_nothing_that_it_may_not_take() -> None:
    """Options that scripts borrow show no parser of the trainer's classes; one that only these classes have does."""
    line = "python main.py --model_name_or_path a/b --output_dir o --per_device_train_batch_size 8 --seed 1"
    for text, doubt in ((line, "plan.by_script"), (f"{line} --save_strategy no", "")):
        found = read({"run.sh": f"{text}\n"})
        book = FactBook(found.facts)
        edits = knob_edits.edits(found.documents, book, {"train.loss_kernel": "liger"})
        assert edits and _doubt(edits, found.documents, book) == doubt


def test_a_script_that_names_a_framework_is_not_it() -> None:
    line = "python scripts/prepare_data_for_axolotl.py --max_len 4096 --micro_batch_size 8\n"
    files = {"run.sh": f"{line}accelerate launch -m axolotl.cli.train c.yml\n", "c.yml": "base_model: a/b\nmicro_batch_size: 2\n"}
    assert keys(files, {"train.micro_batch_size": 1}) == ["micro_batch_size 1"]


# -- limits


def test_a_node_starts_no_more_processes_than_it_has_cards() -> None:
    files = {"run.sh": "torchrun --nproc_per_node 4 train.py --output_dir o --save_strategy no --per_device_train_batch_size 8\n"}
    assert keys(files, {"parallel.world": 8}) == ["--nproc_per_node 8"]
    assert keys(files, {"parallel.world": 16}) is None


VLLM = "vllm/vllm-openai:v0.9.1"
SERVICE = f"services:\n  v:\n    image: {VLLM}\n    command: --model a/b --max-model-len 64\n"
DEVICES = "    deploy: {resources: {reservations: {devices: [{driver: nvidia, capabilities: [gpu], %s}]}}}\n"
LIMITS = "      resources: {limits: {nvidia.com/gpu: 2}}\n"


@for_each(
    "name, text",
    [
        ("r.sh", "CUDA_VISIBLE_DEVICES=0,1 vllm serve a/b --max-model-len 64\n"),
        ("r.sh", f"docker run --gpus 2 {VLLM} --model a/b --max-model-len 64\n"),
        ("r.sh", f"docker run --gpus '\"device=0,3\"' {VLLM} --model a/b --max-model-len 64\n"),
        ("c.yml", SERVICE + DEVICES % "count: 2"),
        ("c.yml", SERVICE + DEVICES % "device_ids: ['0', '3']"),
        ("k.yml", f"kind: Pod\nspec:\n  containers:\n    - image: {VLLM}\n      args: [--model, a/b, --max-model-len, '64']\n{LIMITS}"),
    ],
)  # fmt: skip
def test_no_patch_asks_for_a_degree_higher_than_the_cards_that_are_visible(name: str, text: str) -> None:
    assert doubt({name: text}, {"rollout.tensor_parallel": 2}) == ""
    assert doubt({name: text}, {"rollout.tensor_parallel": 4}) == "plan.by_cards"


def test_no_patch_starts_more_processes_than_cards_are_visible() -> None:
    line = "torchrun --nproc_per_node 2 train.py --output_dir o --save_strategy no --per_device_train_batch_size 8\n"
    assert doubt({"run.sh": line}, {"parallel.world": 4}) == ""
    assert doubt({"run.sh": f"CUDA_VISIBLE_DEVICES=0,1 {line}"}, {"parallel.world": 4}) == "plan.by_cards"


@pytest.mark.parametrize(
    ("text", "changes", "phrase"),
    [
        ("python src/train_bash.py --config c --batch 8 --image_size 512\n", {"train.loss_kernel": "liger"}, "plan.by_script"),
        ("python src/train_bash.py --stage sft --do_train --quantize_unet\n", {"train.loss_kernel": "liger"}, ""),
        ("accelerate launch --config_file zero2.yaml --num_processes 4 t.py --x 1\n", {"fsdp.offload": True}, "plan.by_hand"),
        ("accelerate launch --num_processes 4 t.py --x 1\n", {"fsdp.offload": True}, ""),
    ],
)
def test_what_another_program_or_an_unseen_file_may_refuse_is_doubted(text: str, changes: dict[str, Value], phrase: str) -> None:
    assert doubt({"run.sh": text}, changes) == phrase


def test_an_item_of_a_list_is_no_option() -> None:
    """`plugins [...]` once stood between the options of a command."""
    line = "accelerate launch -m axolotl.cli.train c.yaml --micro_batch_size 4 --sequence_len 64\n"
    edits = keys({"run.sh": line}, {"train.loss_kernel": "liger"})
    assert edits is None or not any("plugins" in edit for edit in edits)


@pytest.mark.parametrize(
    ("framework", "facts", "broken"),
    [
        ("trl", {"train.stage": "grpo", "parallel.world": 3, "train.micro_batch_size": 1, "train.gradient_accumulation": 4}, True),
        ("trl", {"train.stage": "grpo", "parallel.world": 4, "train.micro_batch_size": 1, "train.gradient_accumulation": 4}, False),
        ("trl", {"train.stage": "grpo", "train.micro_batch_size": 1, "train.gradient_accumulation": 1}, False),
        ("axolotl", {"parallel.context": 2, "train.packing": True, "train.micro_batch_size": 2}, True),
        ("axolotl", {"parallel.context": 2, "train.packing": True, "train.micro_batch_size": 1}, False),
        ("openrlhf", {"rollout.placement": "colocated", "rollout.engines": 4, "rollout.tensor_parallel": 4, "actor.gpus": 8}, True),
        ("openrlhf", {"rollout.placement": "apart", "rollout.engines": 4, "rollout.tensor_parallel": 4, "actor.gpus": 8}, False),
    ],
)  # fmt: skip
def test_what_a_program_insists_on(framework: str, facts: Mapping[str, Value], broken: bool) -> None:
    values = {"rollout.num_generations": 8, **facts} if framework == "trl" else facts
    book = FactBook(Fact(name, value, "config", Witness("f")) for name, value in values.items())
    found = broken_constraints(book, [framework])
    assert bool(found) == broken
    for constraint in found:
        text = constraint_text(constraint)
        assert text.en != text.zh and "." not in text.en.replace("0.", ""), text


def test_degrees_multiply_to_the_cards() -> None:
    text = "[training]\nseq_len = 64\nlocal_batch_size = 1\n[parallelism]\ndata_parallel_shard_degree = 4\ntensor_parallel_degree = 2\n"
    assert keys({"t.toml": text}, {"parallel.context": 2}) == [
        "parallelism.context_parallel_degree 2", "parallelism.data_parallel_shard_degree -1"]  # fmt: skip


# -- carriers


COMMAND = "trl sft --model_name_or_path m --dataset_name d --per_device_train_batch_size 8"


@for_each(
    "carrier",
    [
        "tmux new-session -d -s a '{}'", "tmux send-keys -t x \"{}\" C-m", "screen -dmS t bash -c '{}'", "ssh node1 '{}'",
        "script -c '{}' log",
        "sbatch --wrap='{}'", "bsub -q gpu '{}'", "parallel ::: '{}'", "pipenv run {}", "hatch run {}", "rye run {}", "uvx --from trl {}",
        "jsrun -n 1 -g 6 {}", "flux run -N 2 {}", "horovodrun -np 4 {}", "flock /tmp/lock {}", "systemd-run --scope {}",
        'CMD="{}"\nsrun bash -c "$CMD"', "hatch run train:{}", "qsub <<EOF\n#PBS -l select=1\n{}\nEOF",
        "ssh node1 bash -s <<'X'\ncd a\n{}\nX",
        "cat > job.slurm <<'EOF'\n#!/bin/bash\nsrun {}\nEOF\nsbatch job.slurm",
    ],
)  # fmt: skip
def test_a_command_is_found_in_what_carries_it(carrier: str) -> None:
    text = carrier.format(COMMAND) + "\n"
    found = read({"run.sh": text})
    book = FactBook(found.facts)
    assert (book.word("train.framework"), book.count("train.micro_batch_size")) == ("trl", 8)
    assert keys({"run.sh": text}, {"train.micro_batch_size": 2}) == ["--per_device_train_batch_size 2"]


@pytest.mark.parametrize("line", ["ssh node1 trl sft --note 'a b' --per_device_train_batch_size 8", "tmux attach -t 'my run'"])
def test_a_quoted_value_is_no_command(line: str) -> None:
    assert FactBook(read({"run.sh": line + "\n"}).facts).count("train.micro_batch_size") in (None, 8)


# -- whose configuration it is

_MEGATRON = (
    "torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 8 --fp16"
)


@for_each(
    "name, text, changes, why",
    [
        pytest.param("r.sh", f"{_MEGATRON} --data-impl mmap\n", {"zero.offload_optimizer": "cpu"}, "plan.by_script", id="fork"),
        pytest.param("r.sh", f"{_MEGATRON}\n", {"train.gradient_checkpointing": "enabled"}, "", id="not-a-fork"),
        pytest.param(
            "r.sh",
            "python3 main_two_pools.py data.train_batch_size=64 actor_rollout_ref.model.path=a/b "
            "actor_rollout_ref.actor.ppo_mini_batch_size=64\n",
            {"train.gradient_checkpointing": "enabled"},
            "plan.by_script",
            id="hydra-script-of-ones-own",
        ),
        pytest.param(
            "whole.yaml",
            "actor_rollout_ref:\n  model: {path: a/b}\n  actor:\n    ppo_mini_batch_size: 64\n"
            + "".join(f"    own_{number}: 1\n" for number in range(80)),
            {"train.gradient_checkpointing": "enabled"},
            "plan.by_script",
            id="whole-configuration",
        ),
        pytest.param(
            "of-another.yaml",
            "model_name_or_path: a/b\ndataset_name: d\nmax_length: 512\nper_device_train_batch_size: 4\n"
            "dataset_mixer_list: a\nchecks_every: 4\nuse_slow_words: true\n",
            {"train.finetuning": "lora"},
            "plan.by_script",
            id="keys-of-another-program",
        ),
    ],
)  # fmt: skip
def test_a_key_is_added_only_where_the_program_surely_has_it(name: str, text: str, changes: Mapping[str, Value], why: str) -> None:
    assert doubt({name: text}, changes) == why


def test_accumulation_follows_a_global_batch_that_is_set_or_has_a_default() -> None:
    """A mini batch of verl above its train batch would be refused."""
    text = (
        "python3 -m verl.trainer.main_ppo data.train_batch_size=256 actor_rollout_ref.model.path=a/b trainer.n_gpus_per_node=8 "
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8\n"
    )
    changes: dict[str, Value] = {"train.micro_batch_size": 1, "train.gradient_accumulation": 64}
    assert keys({"r.sh": text}, changes) == ["actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu 1"]


@for_each(
    "command, degree, made",
    [
        ("python -m sglang.launch_server --model-path a/b --tp 4 --dp 2 --mem-fraction-static 0.8", 8, False),
        ("python -m sglang.launch_server --model-path a/b --tp 2 --dp 2 --mem-fraction-static 0.8", 4, True),
        ("python -m sglang.launch_server --model-path a/b --tp 4 --dp 4 --enable-dp-attention --mem-fraction-static 0.8", 8, True),
        ("vllm serve a/b --tensor-parallel-size 4 --pipeline-parallel-size 2 --max-model-len 4096", 8, False),
    ],
)
def test_the_degrees_of_an_engine_together_take_no_more_cards_than_a_node_has(command: str, degree: int, made: bool) -> None:
    assert (keys({"r.sh": f"{command}\n"}, {"rollout.tensor_parallel": degree}) is not None) is made


def test_a_card_that_the_engine_may_not_see_is_asked_for_in_words() -> None:
    command = "CUDA_VISIBLE_DEVICES=0,1,2,3 python -m sglang.launch_server --model-path a/b --tp 2 --dp 2 --mem-fraction-static 0.8\n"
    assert doubt({"r.sh": command}, {"rollout.tensor_parallel": 4}) == "plan.by_cards"


# -- programs with options of their own, and values that a file computes

_OLD = (
    "python3 -m verl.trainer.main_ppo data.train_batch_size=512 data.turns_of_search=2 actor_rollout_ref.model.path=a/b "
    "actor_rollout_ref.actor.ppo_mini_batch_size=256 actor_rollout_ref.actor.ppo_micro_batch_size=64 "
    "trainer.n_gpus_per_node=4 trainer.nnodes=2"
)
_INSTRUCT = (
    "accelerate launch --num_processes 8 open_instruct/finetune.py --model_name_or_path a/b --max_seq_length 4096 --output_dir o "
    "--per_device_train_batch_size 2 --gradient_accumulation_steps 4 --learning_rate 1e-5 --num_train_epochs 2 --logging_steps 1\n"
)


@pytest.mark.parametrize(
    ("text", "changes", "phrase"),
    [
        (f"{_OLD}\n", {"parallel.context": 2}, "plan.by_script"),  # overrides a key that no release of verl has
        (_OLD.replace("data.turns_of_search=2", "data.shuffle=False"), {"parallel.context": 2}, ""),
        (_INSTRUCT, {"train.loss_kernel": "liger"}, "plan.by_script"),
        (_INSTRUCT.replace("open_instruct/finetune.py", "run_clm.py"), {"train.loss_kernel": "liger"}, ""),
    ],
)
def test_a_program_with_options_of_its_own_is_not_lent_others(text: str, changes: dict[str, Value], phrase: str) -> None:
    assert doubt({"run.sh": text}, changes) == phrase


def test_rows_over_all_cards_are_changed_where_they_stand() -> None:
    """Beside `ppo_micro_batch_size`, `ppo_micro_batch_size_per_gpu` is refused."""
    assert keys({"run.sh": f"{_OLD}\n"}, {"train.micro_batch_size": 4}) == ["actor_rollout_ref.actor.ppo_micro_batch_size 32"]


def test_what_the_newest_release_does_by_itself_is_said_in_words() -> None:
    text = "python3 -m verl.trainer.main_ppo data.train_batch_size=64 actor_rollout_ref.model.path=a/b\n"
    assert doubt({"run.sh": text}, {"train.packing": "enabled"}) == "plan.by_default"


def test_options_beside_deepspeeds_own_file_are_none() -> None:
    line = "accelerate launch --use_deepspeed {} --num_processes 8 train.py --per_device_train_batch_size 2\n"
    own, none = line.format("--deepspeed_config_file ds.json"), line.format("")
    assert not any("--zero_stage" in key for key in keys({"run.sh": own}, {"zero.stage": 3}) or ())
    assert keys({"run.sh": none}, {"zero.stage": 3}) == ["--zero_stage 3"]


@pytest.mark.parametrize(
    ("before", "steps", "after"),
    [
        (
            "CARDS=$(nvidia-smi -L | wc -l)\nSTEPS=$((64 / CARDS / 4))\n{} 4 --gradient_accumulation_steps $STEPS",
            4,
            "$((64 / CARDS / 4 * 4))",
        ),
        ("{} 4 --gradient_accumulation_steps $((TOTAL - 3))", 2, "$(((TOTAL - 3) * 2))"),
        ("{} 4 --gradient_accumulation_steps $(expr 64 / $CARDS)", 2, "$(($(expr 64 / $CARDS) * 2))"),
        ("ROWS=4\n{} $ROWS --gradient_accumulation_steps $(expr $TOTAL / $ROWS)", 4, None),  # follows by itself
        ("{} 4 --gradient_accumulation_steps 2", 8, "8"),
    ],
)
def test_a_computed_accumulation_is_multiplied_or_follows(before: str, steps: int, after: str | None) -> None:
    text = before.format("swift sft --model a/b --dataset d --per_device_train_batch_size") + "\n"
    found = keys({"run.sh": text}, {"train.micro_batch_size": 1, "train.gradient_accumulation": steps}) or []
    assert [key.partition(" ")[2] for key in found if "accumulation" in key] == ([after] if after else [])


def test_cards_that_a_script_counts_stay_counted() -> None:
    text = "CARDS=$(nvidia-smi -L | wc -l)\ntorchrun --nproc_per_node $CARDS run_clm.py --per_device_train_batch_size 2 --output_dir o\n"
    assert keys({"run.sh": text}, {"parallel.world": 16}) in (None, [])


@pytest.mark.parametrize(
    "lines",
    [
        "if [ $PACK == 1 ]; then\n  cmd+=(--packing)\nfi\n",
        "case $PACK in\n  1) cmd+=(--packing) ;;\nesac\n",
        '[ -n "$PACK" ] && cmd+=(--packing)\n',
    ],
)
def test_no_option_is_added_under_a_condition(lines: str) -> None:
    """It would count only where the condition holds."""
    text = f'cmd=(trl sft --model_name_or_path a/b)\ncmd+=(--per_device_train_batch_size 4)\n{lines}"${{cmd[@]}}"\n'
    found = read({"run.sh": text})
    edits = knob_edits.edits(found.documents, FactBook(found.facts), {"train.loss_kernel": "liger"})
    assert "--packing)" in patching.texts(found.documents, edits or ())["run.sh"]


def test_an_engine_is_not_set_up_where_none_runs() -> None:
    text = "base_model: a/b\nrl: dpo\nmicro_batch_size: 2\nsequence_len: 2048\n"
    assert keys({"a.yaml": text}, {"rollout.gpu_memory_utilization": 0.5}) is None
    assert keys({"a.yaml": f"{text}trl: {{use_vllm: true}}\n"}, {"rollout.gpu_memory_utilization": 0.5})


def test_megatrons_degrees_are_added_to_megatrons_configuration_alone() -> None:
    line = "python3 -m verl.trainer.main_ppo {} data.train_batch_size=64 actor_rollout_ref.model.path=a/b\n"
    assert keys({"run.sh": line.format("")}, {"parallel.pipeline": 2}) is None
    assert keys({"run.sh": line.format("--config-name=ppo_megatron_trainer")}, {"parallel.pipeline": 2})


# -- what the judges found (benchmarks/edits)

_MEGATRON = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --micro-batch-size 2 --tensor-model-parallel-size 1"


@for_each(
    "text, changes, wanted",
    [
        # an option that takes dashes alone, whatever stands beside it
        ("python yolov5/train.py --data d.yaml --weights w.pt --img_size 640", {"train.micro_batch_size": 8}, ["--batch-size 8"]),
        ("python yolov5/train.py --batch 64 --data d.yaml --weights w.pt --img 640", {"train.micro_batch_size": 8}, ["--batch 8"]),
        # experts under tensor parallelism want sequence parallelism; Megatron's FSDP its own checkpoints
        (f"{_MEGATRON} --num-experts 8", {"parallel.tensor": 2}, ["--tensor-model-parallel-size 2", "--sequence-parallel"]),
        (_MEGATRON, {"parallel.tensor": 2}, ["--tensor-model-parallel-size 2"]),
        (
            _MEGATRON,
            {"fsdp.sharding": "full_shard"},
            ["--use-megatron-fsdp", "--data-parallel-sharding-strategy optim_grads_params", "--ckpt-format fsdp_dtensor"],
        ),
        # every script of ColossalChat but one calls the length otherwise
        ("torchrun train_dpo.py --pretrain a --plugin zero2", {"train.max_seq_len": 256}, ["--max_length 256"]),
        ("torchrun train_sft.py --pretrain a --plugin zero2", {"train.max_seq_len": 256}, ["--max_len 256"]),
        # kohya's scripts make their own plugin of DeepSpeed
        (
            "accelerate launch sdxl_train.py --pretrained_model_name_or_path m --train_batch_size 2 --mixed_precision bf16",
            {"zero.stage": 3},
            ["--zero_stage 3", "--deepspeed"],
        ),
    ],
)
def test_options_are_those_of_the_program(text: str, changes: dict[str, Value], wanted: list[str]) -> None:
    assert keys({"run.sh": text}, changes) == wanted


@for_each(
    "version, given, wanted",
    [("5.24.0", "", 'fsdp "full_shard auto_wrap"'), ("5.24.0", "fsdp: true\n", "fsdp_config.reshard_after_forward true")],
)
def test_fsdp_is_switched_on_before_it_is_tuned(version: str, given: str, wanted: str) -> None:
    """fsdp_config does nothing where fsdp is not set."""
    text = f"model_name_or_path: m\ndataset_name: d\noutput_dir: o\nmax_length: 512\n{given}fsdp_config:\n  reshard_after_forward: false\n"
    text = text if given else text.partition("fsdp_config")[0]
    assert keys({"sft.yaml": text}, {"fsdp.sharding": "full_shard"}, transformers=version) == [wanted]


def test_the_variable_that_a_key_names_is_changed() -> None:
    """What else names it follows, and nothing that is named is removed."""
    text = (
        "variables:\n  max_seq_len: 4096\nmax_seq_len: ${variables.max_seq_len}\nmodel: {name: hf_causal_lm}\n"
        "train_loader:\n  dataset: {max_seq_len: '${variables.max_seq_len}'}\ndevice_train_microbatch_size: 4\n"
    )
    assert keys({"f.yaml": text}, {"train.max_seq_len": 2048}) == ["variables.max_seq_len 2048"]


def test_a_key_that_hydra_adds_tells_an_older_release() -> None:
    """`+` before a key of verl's own says that the release has none: those that have it are not asked."""
    assert declared_keys.written(["+a.b", "++a.c", "a.d", "--e-f"]) == ("+a.b", "a.c", "a.d", "e_f")
    found = declared_keys.record("verl")
    assert found is not None
    name = "actor_rollout_ref.actor.fsdp_config.model_dtype"
    columns = [column for column in found.columns if column.entry == "verl.trainer.main_ppo"]
    having = {column.release for column in declared_keys._consistent(found, columns, [name])}
    lacking = {column.release for column in declared_keys._consistent(found, columns, [f"+{name}"])}
    assert having and lacking and not having & lacking
