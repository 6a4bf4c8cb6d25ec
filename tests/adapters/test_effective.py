"""What holds once everything is read: keys in vain, files that disagree, quantities that follow, variables by release."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest
from checkout import ROOT
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep import examples

from diagnose import check, explain, rule_files
from diagnose.adapters import config_reader
from diagnose.adapters.formats.settings import ConfigSource, Settings
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.translate.effective_settings import derive_quantities
from diagnose.decide import verdict_wording
from diagnose.facts import Fact, FactBook, Value, Witness, declared, typed
from diagnose.parse.model.reading import Reading
from diagnose.phrases import Lang, Text
from diagnose.plan.edits import env_edits
from diagnose.plan.patch import patching
from diagnose.render.markup import facts_view
from diagnose.render.parts.view import View
from diagnose.render.parts.words import value_text
from diagnose.render.parts.wrapping import cells

TRAINER = "--model_name_or_path Qwen/Qwen2.5-7B --output_dir out"


def read(files: Mapping[str, str], known: Mapping[str, str] | None = None) -> Settings:
    book = FactBook(Fact(name, typed(name, text), "given", Witness("given")) for name, text in (known or {}).items())
    return config_reader.read([ConfigSource(name, text.encode()) for name, text in files.items()], Reading(), book)


def value(told: Settings, name: str) -> Value:
    return FactBook(told.facts).value(name)


def all_of(told: Settings, name: str) -> list[Value]:
    return [fact.value for fact in told.facts if fact.name == name]


def codes(told: Settings) -> list[str]:
    return [notice.code for notice in told.notices]


# -- quantities that follow


def test_a_micro_batch_follows_from_the_global_one_with_its_arithmetic() -> None:
    told = read(
        {"d.json": '{"train_batch_size": 64, "gradient_accumulation_steps": 2, "bf16": {"enabled": true}}'}, {"parallel.world": "8"}
    )
    fact = FactBook(told.facts).fact("train.micro_batch_size")
    assert fact is not None
    assert (fact.value, fact.origin, fact.witness.text) == (4, "derived", "64 / (2 * 8)")


def test_deepspeed_alone_takes_one_accumulation_step() -> None:
    told = read({"d.json": '{"train_batch_size": 64, "bf16": {"enabled": true}}'}, {"parallel.world": "8"})
    assert value(told, "train.micro_batch_size") == 8


@pytest.mark.parametrize(("world", "expected"), [("16", 2), ("12", None)])
def test_data_parallel_ranks_are_the_world_over_the_model_parallel_sizes(world: str, expected: int | None) -> None:
    """A world that the sizes do not divide is a mistake somewhere: nothing is made up."""
    text = "python pretrain_gpt.py --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --micro-batch-size 1\n"
    assert value(read({"run.sh": text}, {"parallel.world": world}), "parallel.data") == expected


def test_zero_over_one_rank_shares_nothing_out() -> None:
    """DeepSpeed's own sum of the batch tells how many ranks there are; tensor parallelism may take all cards."""
    command = "deepspeed pretrain_gpt2.py --model-parallel-size 8 --batch-size {} --fp16 --deepspeed --deepspeed_config d.json\n"
    config = '{"train_batch_size": 8, "gradient_accumulation_steps": 1, "zero_optimization": {"stage": 2}}'
    found = {rows: read({"run.sh": command.format(rows), "d.json": config}) for rows in (8, 2)}
    assert {rows: value(told, "parallel.data") for rows, told in found.items()} == {8: 1, 2: 4}
    assert ["one data-parallel rank" in str(told.notices) for told in found.values()] == [True, False]


def test_a_key_is_never_written_in_its_own_place() -> None:
    told = read({"run.sh": "python -m openrlhf.cli.train_ppo_ray --pretrain a/b --micro_train_batch_size 1 --use_liger_kernel\n"})
    assert [fact.value for fact in told.facts if fact.name == "config.ignored_key"] == ["--use_liger_kernel"]
    assert "config.wanted_key" not in FactBook(told.facts) and value(told, "train.fused_layers") is not None


def test_what_somebody_says_is_never_derived() -> None:
    told = read(
        {"run.sh": f"torchrun --nproc_per_node 2 train.py {TRAINER} --per_device_train_batch_size 3 --gradient_accumulation_steps 5\n"}
    )
    assert [fact.origin for fact in told.facts if fact.name == "train.micro_batch_size"] == ["config"]
    assert (value(told, "parallel.data"), value(told, "train.rows_per_step")) == (2, 30)


def test_packed_rows_have_so_many_tokens() -> None:
    text = "base_model: a/b\ndatasets:\n  - path: d\nmicro_batch_size: 2\nsequence_len: 4096\nsample_packing: true\n"
    assert value(read({"c.yaml": text}), "train.packed_tokens") == 8192
    assert value(read({"c.yaml": text.replace("sample_packing: true", "sample_packing: false")}), "train.packed_tokens") is None


# -- settings without effect in this combination


def test_parameters_are_offloaded_under_stage_3_only() -> None:
    text = '{"train_batch_size": 8, "zero_optimization": {"stage": %d, "offload_param": {"device": "cpu"}}}'
    two, three = read({"d.json": text % 2}), read({"d.json": text % 3})
    assert (value(two, "zero.offload_param"), value(three, "zero.offload_param")) == ("none", "cpu")
    assert (value(two, "config.ignored_key"), value(two, "config.wanted_key")) == (
        "zero_optimization.offload_param",
        "zero_optimization.stage",
    )
    assert "config.ignored_key" not in codes(three)


def test_keys_of_stage_3_that_people_leave_in_a_file_are_a_fact_without_a_sentence() -> None:
    text = '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "stage3_prefetch_bucket_size": 5e7}}'
    told = read({"d.json": text})
    assert value(told, "config.ignored_key") == "zero_optimization.stage3_prefetch_bucket_size"
    assert not told.notices
    assert value(told, "zero.prefetch_bucket") is None


def test_adapter_keys_without_adapters_are_said() -> None:
    told = read({"c.yaml": "stage: sft\nfinetuning_type: full\ntemplate: x\nlora_rank: 8\n"})
    assert (value(told, "config.ignored_key"), value(told, "config.wanted_value")) == ("lora_rank", "full")
    assert not codes(read({"c.yaml": "stage: sft\nfinetuning_type: lora\ntemplate: x\nlora_rank: 8\n"}))


@pytest.mark.parametrize(("gpu", "expected"), [("V100-32GB", "attn_implementation"), ("A100-80GB", None), ("", None)])
def test_flash_attention_needs_a_card_that_runs_it(gpu: str, expected: str | None) -> None:
    """An unknown card is no reason to complain."""
    text = "output_dir: o\nper_device_train_batch_size: 1\nattn_implementation: flash_attention_2\n"
    assert value(read({"c.yaml": text}, {"hardware.gpu": gpu} if gpu else {}), "config.ignored_key") == expected


def test_a_loss_that_needs_its_logits_leaves_the_fused_one_out() -> None:
    text = "stage: %s\nfinetuning_type: full\ntemplate: x\nenable_liger_kernel: true\n"
    assert (value(read({"c.yaml": text % "dpo"}), "train.loss_kernel"), value(read({"c.yaml": text % "sft"}), "train.loss_kernel")) == (
        "none",
        "liger",
    )


def test_a_detail_whose_switch_stands_in_another_file_of_the_framework_is_not_in_vain() -> None:
    files = {
        "run.sh": "llamafactory-cli train c.yaml quantization_bit=4\n",
        "c.yaml": "stage: sft\nfinetuning_type: lora\nquantization_type: nf4\n",
    }
    assert "config.ignored_key" not in codes(read(files))
    alone = read({"c.yaml": files["c.yaml"]})
    assert value(alone, "config.ignored_key") == "quantization_type"


def test_details_of_a_quantisation_that_nobody_switches_on_quantise_nothing() -> None:
    head = "from transformers import TrainingArguments, BitsAndBytesConfig\n"
    text = head + "b = BitsAndBytesConfig(%sbnb_4bit_quant_type='nf4')\na = TrainingArguments('o')\n"
    alone, on = read({"t.py": text % ""}), read({"t.py": text % "load_in_4bit=True, "})
    assert (value(alone, "model.quantization"), value(on, "model.quantization")) == ("none", "nf4")
    assert value(alone, "config.ignored_key") == "BitsAndBytesConfig.bnb_4bit_quant_type"


def test_every_line_of_the_table_names_what_is_declared() -> None:
    table = rule_files.table("effective")
    for rule in table["derived"]:
        names = [name for part in (*rule["of"], *rule.get("over", ())) for name in part.partition("=")[0].split("|")]
        assert all(declared(name) for name in (rule["name"], *names, *rule.get("if", {}), *rule.get("unless", ()))), rule
    for rule in table["ineffective"]:
        names = [*rule["knob"], *(name for name in rule.get("if", {}) if not name.startswith("card.")), rule.get("real", rule["knob"][0])]
        assert all(declared(name) for name in names), rule
        for text in (rule["en"], rule["zh"]):
            assert set(re.findall(r"\{(.*?)\}", text)) <= {"key", *rule.get("if", {})}, text


IGNORED = {"key", "without", "with", "item", "where", "since", "until", "knobs", "wants", "real", "quiet", "en", "zh"}


@for_each("name", sorted(rule_files.table("frameworks")))
def test_every_line_of_ignored_has_known_fields_and_keys(name: str) -> None:
    """A key that the framework does not have would never be met."""
    known = {key for other in framework_tables.names() for key in framework_tables.table(other).known}
    for rule in rule_files.table("frameworks")[name].get("ignored", ()):
        assert set(rule) <= IGNORED, rule
        assert rule["en"] and rule["zh"]
        assert declared(rule.get("wants", "train.stage"))
        for key in rule["key"].split():
            assert "*" in key or key in known or key.partition(".")[0] in known or key[:1].isupper() or "." in key, key


# -- files that disagree


DISAGREE = f"deepspeed --num_gpus 4 train.py {TRAINER} --deepspeed d.json --per_device_train_batch_size 2 --bf16 True\n"


def test_the_trainer_refuses_a_deepspeed_file_that_differs() -> None:
    told = read(
        {
            "run.sh": DISAGREE,
            "d.json": '{"train_micro_batch_size_per_gpu": 8,\n"fp16": {"enabled": true},\n"zero_optimization": {"stage": 2}}',
        }
    )
    assert all_of(told, "config.conflict") == ["train.micro_batch_size", "train.precision"]
    sentences = [notice.message for notice in told.notices if notice.code == "config.conflict"]
    assert all("refuses to start" in text.en and "拒绝启动" in text.zh for text in sentences)


def test_auto_and_equal_values_are_no_conflict() -> None:
    told = read(
        {
            "run.sh": DISAGREE,
            "d.json": '{"train_micro_batch_size_per_gpu": "auto",\n"bf16": {"enabled": true},\n"zero_optimization": {"stage": 2}}',
        }
    )
    assert not all_of(told, "config.conflict")


def test_a_global_batch_that_is_not_the_product_is_refused() -> None:
    told = read(
        {
            "run.sh": DISAGREE.replace("--bf16", "--gradient_accumulation_steps 4 --bf16"),
            "d.json": '{"train_batch_size": 16, "zero_optimization": {"stage": 2}}',
        }
    )
    (notice,) = [notice for notice in told.notices if notice.code == "config.conflict"]
    assert "2 * 4 * 4 = 32" in notice.message.en


def test_accelerates_precision_gives_way_to_the_trainers() -> None:
    files = {
        "run.sh": f"accelerate launch --config_file a.yaml train.py {TRAINER} --per_device_train_batch_size 1 --bf16 True\n",
        "a.yaml": "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nmixed_precision: fp16\nnum_processes: 2\n",
    }
    told = read(files)
    assert value(told, "train.precision") == "bf16"
    assert all_of(told, "config.conflict") == ["train.precision"]


def test_a_deepspeed_file_beside_the_plugins_keys_decides() -> None:
    files = {
        "a.yaml": "distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n  deepspeed_config_file: d.json\n  zero_stage: 2\n",
        "d.json": '{"zero_optimization": {"stage": 3}}',
    }
    told = read(files)
    assert (value(told, "zero.stage"), value(told, "config.ignored_key")) == (3, "deepspeed_config.zero_stage")


def test_the_command_line_over_the_file_is_said_once_with_both_places() -> None:
    files = {"run.sh": "llamafactory-cli train c.yaml cutoff_len=512\n", "c.yaml": "stage: sft\nfinetuning_type: full\ncutoff_len: 4096\n"}
    (notice,) = [notice for notice in read(files).notices if notice.code == "config.overridden"]
    assert notice.level == "info"
    assert "4096 in c.yaml:3" in notice.message.en and "512 (run.sh:1)" in notice.message.en


def test_auto_has_a_value_only_where_something_writes_one() -> None:
    """DeepSpeed by itself drops the word; the transformers Trainer writes a figure; Lightning does neither."""
    files = {
        "t.py": "from lightning import Trainer\nt = Trainer(devices=2, accumulate_grad_batches=2)\n",
        "d.json": '{"zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"}}',
    }
    known = {"model.path": "Qwen/Qwen2.5-7B"}
    assert value(read(files, known), "zero.reduce_bucket") is None
    assert value(read({"run.sh": DISAGREE, "d.json": files["d.json"]}), "zero.reduce_bucket") == 3584**2


@for_each("name", sorted(rule_files.table("frameworks")))
def test_integrations_name_frameworks_and_keys_that_exist(name: str) -> None:
    tab = framework_tables.table(name)
    for way in tab.integrations:
        assert way["called"]["en"] and way["called"]["zh"]
        assert set(way["frameworks"]) <= set(framework_tables.names())
        for key in (*way.get("refuses", ()), *way.get("trainer", ()), *way.get("engine", ())):
            assert tab.named(key), key


KEYS = [
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "zero_optimization.stage",
    "zero_optimization.offload_param.device",
    "zero_optimization.reduce_bucket_size",
    "zero_optimization",
    "bf16.enabled",
    "fp16",
    "activation_checkpointing",
    "{x}",
    "sequence_parallel_size",
]
ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10**20),
    st.text(max_size=6),
    st.lists(st.integers(0, 9), max_size=2),
    st.just("auto"),
    st.builds(dict),
)


@given(
    held=st.dictionaries(st.sampled_from(KEYS), ANYTHING),
    flags=st.dictionaries(st.sampled_from(["bf16", "per_device_train_batch_size", "deepspeed", "lora_r"]), st.text(max_size=5)),
)
def test_whatever_the_values_nothing_raises(held: dict[str, object], flags: dict[str, str]) -> None:
    nested: dict[str, object] = {}
    for key, thing in held.items():
        block, dot, name = key.partition(".")
        inner = nested.setdefault(block, {}) if dot else nested
        if isinstance(inner, dict):
            inner[name or block] = thing
    command = " ".join(f"--{name}={shlex.quote(text)}" for name, text in flags.items())
    check(
        [
            ConfigSource("d.json", json.dumps(nested).encode()),
            ConfigSource("run.sh", f"deepspeed --num_gpus 2 t.py {TRAINER} {command}\n".encode()),
        ]
    )


# -- keys that are not read


def test_a_misspelt_key_of_a_block_that_allows_no_others_is_named() -> None:
    told = read({"d.json": '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimiser": {"device": "cpu"}}}'})
    (notice,) = told.notices
    assert "offload_optimizer" in notice.message.en
    assert value(told, "config.unknown_key") is None  # whatever ran did not have it


def test_a_misspelt_block_is_named_once_and_not_with_each_key_inside() -> None:
    """What lies in it is lost with it: its knob is wanted all the same, the sentence is one."""
    told = read(
        {
            "c.yaml": "base_model: a/b\ndatasets:\n  - path: d\nmicro_batch_size: 1\n"
            "fsdp_confg:\n  offload_params: true\n  state_dict_type: FULL_STATE_DICT\n"
        }
    )
    assert [notice.witness.key for notice in told.notices if notice.code == "config.unknown_key" and notice.witness] == ["fsdp_confg"]
    assert value(told, "config.wanted_knob") == "fsdp.offload"


def test_a_misspelt_key_of_deepspeed_is_named_with_the_real_one() -> None:
    told = read({"d.json": '{"train_micro_batch_size": 8, "zero_optimization": {"stage": 2}}'})
    assert (value(told, "config.unknown_key"), value(told, "config.wanted_knob")) == ("train_micro_batch_size", "train.micro_batch_size")


# -- variables


RUN = f"python train.py {TRAINER} --per_device_train_batch_size 1\n"
BOTH = f"export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128\nexport PYTORCH_ALLOC_CONF=expandable_segments:True\n{RUN}"


@for_each(
    "text, torch, expandable, split",
    [
        (BOTH, "2.10.0", True, None),
        (BOTH, "2.6.0", None, "128 MiB"),
        (f"export PYTORCH_ALLOC_CONF=expandable_segments:True\n{RUN}", "2.12.0", True, None),
        (f"export PYTORCH_ALLOC_CONF=expandable_segments:True\n{RUN}", "2.9.1", None, None),
        (f"export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n{RUN}", "2.12.0", True, None),
        (f"export PYTORCH_HIP_ALLOC_CONF=expandable_segments:True\n{RUN}", "2.4.0", True, None),
        (f"export PYTORCH_ALLOC_CONF=expandable_segments:True\n{RUN}", "", True, None),
    ],
)
def test_the_allocator_takes_one_string_whole_and_which_depends_on_the_release(
    text: str, torch: str, expandable: bool | None, split: str | None
) -> None:
    told = read({"run.sh": text}, {"version.torch": torch} if torch else {})
    size = value(told, "alloc.max_split_size")
    assert (value(told, "alloc.expandable_segments"), str(size) if size else None) == (expandable, split)


def test_the_general_name_under_an_old_torch_is_in_vain() -> None:
    told = read({"run.sh": f"PYTORCH_ALLOC_CONF=expandable_segments:True {RUN}"}, {"version.torch": "2.9.1"})
    assert (value(told, "config.ignored_key"), value(told, "config.wanted_key")) == ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


def test_another_backend_ignores_the_options_of_the_native_one() -> None:
    told = read({"run.sh": f"export PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync,max_split_size_mb:64\n{RUN}"})
    assert (value(told, "alloc.backend"), value(told, "alloc.max_split_size")) == ("cuda_async", None)
    assert value(told, "config.ignored_key") == "PYTORCH_CUDA_ALLOC_CONF"


def test_accelerates_variables_count_with_its_switch() -> None:
    text = f"export ACCELERATE_USE_DEEPSPEED=true\nexport ACCELERATE_DEEPSPEED_ZERO_STAGE=3\n{RUN}"
    assert value(read({"run.sh": text}), "zero.stage") == 3
    assert value(read({"run.sh": text.replace("=true", "=false")}), "zero.stage") != 3


def test_cards_per_node_are_not_the_world_where_a_hostfile_names_the_nodes() -> None:
    text = f"deepspeed --hostfile hosts --num_gpus 8 train.py {TRAINER} --per_device_train_batch_size 1\n"
    assert value(read({"run.sh": text}), "parallel.world") is None
    assert value(read({"run.sh": text.replace("--num_gpus", "--num_nodes 2 --num_gpus")}), "parallel.world") == 16


OPTIONS = [
    "max_split_size_mb:256",
    "garbage_collection_threshold:0.8",
    "roundup_power2_divisions:[256:1,>:4]",
    "pinned_use_background_threads:True",
]


@given(
    held=st.lists(st.sampled_from(OPTIONS), unique=True, min_size=1),
    quote=st.sampled_from(["", '"', "'"]),
    gap=st.sampled_from(["", " "]),
    form=st.sampled_from(["shell", "python"]),
)
@settings(max_examples=examples(60), deadline=None)
def test_an_option_joins_the_string_that_is_there(held: list[str], quote: str, gap: str, form: str) -> None:
    """The other options, the quotes and every byte outside the string stay; what is read back is what was wanted."""
    string = f",{gap if quote or form == 'python' else ''}".join(held)
    quote = quote or ('"' if form == "python" else "'" if "[" in string else "")
    text = (
        f"# mine\nexport PYTORCH_CUDA_ALLOC_CONF={quote}{string}{quote}  # kept\n{RUN}"
        if form == "shell"
        else f"import os\nos.environ['PYTORCH_CUDA_ALLOC_CONF'] = {quote}{string}{quote}  # kept\n"
        "from transformers import TrainingArguments\na = TrainingArguments('o')\n"
    )
    name = "run.sh" if form == "shell" else "run.py"
    told = read({name: text})
    edits = env_edits.edits({"alloc.expandable_segments": True}, FactBook(told.facts), told.documents)
    (new,) = patching.texts(told.documents, edits).values()
    assert new == text.replace(f"{quote}{string}{quote}", f"{quote}{','.join([*held, 'expandable_segments:True'])}{quote}")
    again = read({name: new})
    assert value(again, "alloc.expandable_segments") is True
    for knob in ("alloc.max_split_size", "alloc.gc_threshold", "alloc.roundup"):
        assert value(again, knob) == value(told, knob)


def test_an_option_is_changed_in_its_place_and_the_other_backend_goes() -> None:
    told = read({"run.sh": f"export PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync,expandable_segments:False,max_split_size_mb:64\n{RUN}"})
    (edit,) = env_edits.edits({"alloc.expandable_segments": True}, FactBook(told.facts), told.documents)
    assert edit.to == "expandable_segments:True,max_split_size_mb:64"
    (line,) = env_edits.export_lines({"alloc.expandable_segments": True}, FactBook(told.facts), told.documents)
    assert line == f"PYTORCH_CUDA_ALLOC_CONF={edit.to}"


def test_a_name_that_the_release_does_not_read_is_put_right() -> None:
    known = {"version.torch": "2.6.0"}
    told = read({"run.sh": f"export PYTORCH_ALLOC_CONF=expandable_segments:True\n{RUN}"}, known)
    book = FactBook(told.facts).learn(Fact(name, typed(name, text), "given", Witness("given")) for name, text in known.items())
    edits = env_edits.edits({"alloc.expandable_segments": True}, book, told.documents)
    assert patching.texts(told.documents, edits) == {"run.sh": f"export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n{RUN}"}


def test_a_string_that_only_a_running_shell_knows_is_left_alone() -> None:
    told = read({"run.sh": f"export PYTORCH_CUDA_ALLOC_CONF=$OTHER\n{RUN}"})
    assert all(edit.frm is None for edit in env_edits.edits({"alloc.expandable_segments": True}, FactBook(told.facts), told.documents))


def test_a_script_without_the_variable_gets_an_export_line() -> None:
    told = read({"run.sh": f"#!/bin/bash\n# mine\n{RUN}"})
    edits = env_edits.edits({"alloc.expandable_segments": True}, FactBook(told.facts), told.documents)
    (new,) = patching.texts(told.documents, edits).values()
    assert "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n" in new
    assert value(read({"run.sh": new}), "alloc.expandable_segments") is True


# -- shown


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_settings_are_shown_with_key_place_and_whether_they_were_set(lang: Lang) -> None:
    """Every line fits 80 columns, and whole keys are shown."""
    texts = {
        "run.sh": f"deepspeed --num_gpus 4 train.py {TRAINER} --deepspeed d.json --per_device_train_batch_size 2\n".encode(),
        "d.json": b'{"zero_optimization": {"stage": 3,\n"stage3_gather_16bit_weights_on_model_save": true}}',
    }
    diagnosis = check([ConfigSource(name, data) for name, data in texts.items()])
    text = facts_view.as_text(diagnosis, lang, View(width=80))
    assert max(map(cells, text.splitlines())) <= 80
    assert re.search(r"   1 --per_device_train_batch_size +train\.micro_batch_size +2\n", text)
    assert "zero_optimization.stage3_gather_16bit_weights_on_model_save" in text
    parts = {"en": ["set in run.sh", "follows from the others", "set by nobody"], "zh": ["设置于 run.sh", "由其他参数推导", "取默认值"]}
    assert all(part in text for part in parts[lang])


# -- defaults belong to an engine that is in use


@for_each(
    "name, text",
    [
        ("a.yaml", "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\nnum_processes: 4\n"),
        ("a.yaml", "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_processes: 4\n"),
        ("d.json", '{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}}'),
        ("run.sh", f"torchrun --nproc_per_node 8 train.py {TRAINER} --fsdp full_shard\n"),
    ],
)
def test_no_bucket_has_a_size_where_no_zero_optimizer_runs(name: str, text: str) -> None:
    told = read({name: text})
    sizes = (
        "reduce_bucket",
        "allgather_bucket",
        "prefetch_bucket",
        "persistence_threshold",
        "max_live_parameters",
        "sub_group",
        "overlap_comm",
    )
    assert [value(told, f"zero.{size}") for size in sizes] == [None] * len(sizes)


@pytest.mark.parametrize(("stage", "here", "not_here"), [(2, "allgather_bucket", "sub_group"), (3, "sub_group", "allgather_bucket")])
def test_each_stage_has_its_own_sizes(stage: int, here: str, not_here: str) -> None:
    told = read({"d.json": f'{{"train_batch_size": 8, "zero_optimization": {{"stage": {stage}}}}}'})
    assert (value(told, f"zero.{here}") is not None, value(told, f"zero.{not_here}")) == (True, None)
    assert value(told, "zero.reduce_bucket") == 500_000_000


def test_what_a_block_lacks_is_called_by_its_key() -> None:
    """The reader knows the file's keys, not our names."""
    told = read({"a.yaml": "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nfsdp_config: {}\nnum_processes: 4\n"})
    notes = {fact.name: fact.witness.text for fact in told.facts if fact.name.startswith("fsdp.")}
    assert notes["fsdp.wrap"] == "fsdp_config without fsdp_transformer_layer_cls_to_wrap"
    assert not any("fsdp." in text for text in notes.values())


@for_each("vllm, expected", [("0.6.4", 0.9), ("0.10.2", 0.9), ("0.19.0", 0.9), ("0.20.0", None), ("0.21.0", 0.92), ("0.33.0", 0.92)])
def test_the_share_of_an_engine_is_that_of_its_release(vllm: str, expected: float | None) -> None:
    told = read({"run.sh": "vllm serve a/b --max-model-len 4096\n"}, {"version.vllm": vllm})
    assert value(told, "rollout.gpu_memory_utilization") == expected


@for_each(
    "command, guess, model",
    [
        ('vllm serve a/b --speculative-config \'{"method": "mtp", "num_speculative_tokens": 1}\'', "mtp", None),
        ('vllm serve a/b --speculative-config \'{"model": "c/d", "method": "eagle3"}\'', "eagle", "c/d"),
        ("vllm serve a/b --speculative-config nothing", None, None),
        ("vllm serve a/b --speculative-model c/d", None, "c/d"),
        ("python -m sglang.launch_server --model-path a/b --speculative-algorithm NEXTN", "mtp", None),
    ],
)
def test_what_guesses_ahead_is_read_from_an_object_on_the_command_line(command: str, guess: str | None, model: str | None) -> None:
    told = read({"run.sh": command + "\n"})
    assert (value(told, "rollout.draft"), value(told, "rollout.draft_model")) == (guess, model)


@for_each(
    "settings, sharding, version",
    [
        ("model_engine=veomni", "full_shard", 2),
        ("model_engine=veomni actor_rollout_ref.actor.veomni.fsdp_size=8", None, 2),
        ("model_engine=torchtitan", "none", 2),
        ("model_engine=torchtitan actor_rollout_ref.actor.torchtitan.data_parallel_shard_size=8", "full_shard", 2),
        ("model_engine=mindspeed", "none", None),
        ("actor_rollout_ref.actor.strategy=fsdp2", "full_shard", 2),
        ("actor_rollout_ref.actor.strategy=something_new", None, None),
    ],
)
def test_an_engine_of_verl_shards_in_its_own_way(settings: str, sharding: str | None, version: int | None) -> None:
    text = f"python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=a/b {settings}\n"
    told = read({"run.sh": text})
    assert (value(told, "fsdp.sharding"), value(told, "fsdp.version")) == (sharding, version)


def test_a_file_that_another_builds_on_is_followed_beside_it(tmp_path: Path) -> None:
    """NeMo-RL's recipes hold a few lines over `defaults:`; a base outside the folder is not opened, and that is said."""
    base = "policy:\n  model_name: a/b\n  train_micro_batch_size: 4\n  max_total_sequence_length: 512\n"
    (tmp_path / "base.yaml").write_text(base)
    (tmp_path / "recipe.yaml").write_text("defaults: base.yaml\npolicy:\n  train_micro_batch_size: 1\n  logprob_batch_size: 1\n")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "far.yaml").write_text("defaults: ../base.yaml\npolicy:\n  model_name: a/b\n  train_micro_batch_size: 2\n")
    near, far = (
        config_reader.read([ConfigSource.file(tmp_path / name)], Reading(), FactBook([])) for name in ("recipe.yaml", "below/far.yaml")
    )
    assert (value(near, "train.micro_batch_size"), value(near, "train.max_seq_len")) == (1, 512)
    assert value(far, "train.max_seq_len") is None
    assert "config.not_given" in codes(far)


def test_the_framework_that_reads_a_key_is_named_in_the_readers_language() -> None:
    """The fact holds both names; a sentence takes the one of its language, with its article in English."""
    script = (ROOT / "corpus" / "configs" / "transformers" / "qlora-late.py").read_text(encoding="utf-8")
    book = FactBook(read({"train.py": script}).facts)
    assert book.value("config.reader") == Text("the transformers Trainer", "transformers Trainer")
    sentence = verdict_wording.filled(Text("{config.reader} reads it", "{config.reader} 读取它"), book.value)
    assert sentence == Text("the transformers Trainer reads it", "transformers Trainer 读取它")
    assert value_text(book.value("config.reader"), "zh") == "transformers Trainer"


@for_each("framework, of_trl", [("trl", True), ("unsloth", True), ("swift", True), ("verl", False)])
def test_what_follows_for_a_framework_follows_for_those_that_extend_it(framework: str, of_trl: bool) -> None:
    """Unsloth runs the trainers of TRL: the rows of its batches are completions."""
    known = {"train.framework": framework, "train.stage": "grpo", "train.micro_batch_size": "2", "train.gradient_accumulation": "3"}
    known |= {"parallel.data": "4", "rollout.batch": "5", "rollout.num_generations": "7"}
    book = FactBook(Fact(name, typed(name, text), "given", Witness("given")) for name, text in known.items())
    derived = {fact.name: fact.value for fact in derive_quantities(book)}
    assert derived["rollout.sequences"] == (24 if of_trl else 35)


def test_details_of_adapters_beside_a_choice_of_all_weights_are_left_over() -> None:
    """Whoever writes `finetuning_type: full` means it, whatever a template leaves below; who only sets a rank meant adapters."""
    log = "torch.cuda.OutOfMemoryError: CUDA out of memory."
    chosen = "model_name_or_path: Qwen/Qwen1.5-14B-Chat\nstage: sft\nfinetuning_type: full\nlora_rank: 8\ntemplate: qwen\n"
    meant = "base_model: Qwen/Qwen1.5-14B-Chat\nmicro_batch_size: 1\nsequence_len: 512\nlora_r: 8\n"
    for text, blamed in ((chosen, False), (meant, True)):
        found = explain([log], configs=[ConfigSource("train.yaml", text.encode())])
        assert ("config_not_effective" in [cause.cause for cause in found.judgement.causes]) == blamed
