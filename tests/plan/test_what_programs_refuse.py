"""Edits that a program would refuse beside what stands there already, or that belong into another file of it, are not written so."""

from __future__ import annotations

from collections.abc import Mapping

from collected import for_each
from settings_read import read

from diagnose.facts import FactBook, Value
from diagnose.plan.edits import knob_edits
from diagnose.plan.patch import patching


def changed(files: Mapping[str, str], **knobs: Value) -> dict[str, str] | None:
    """The files as an edit leaves them, None where none is written."""
    told = read(files)
    changes = {name.replace("__", "."): value for name, value in knobs.items()}
    edits = knob_edits.edits(told.documents, FactBook(told.facts), changes)
    return None if edits is None else patching.texts(told.documents, edits)


# -- what needs an evaluation, and its measure

BEST = {
    "run.sh": "python train.py --output_dir o --model_name_or_path a/b --per_device_train_batch_size 4 --eval_strategy steps {}\n",
    "run.py": "from transformers import TrainingArguments\nargs = TrainingArguments(output_dir='o', eval_strategy='steps', {})\n",
    "run.yaml": "stage: sft\nfinetuning_type: lora\ntemplate: qwen\nval_size: 0.1\neval_strategy: steps\n{}\n",
    "old.yaml": "stage: sft\nfinetuning_type: lora\ntemplate: qwen\nval_size: 0.1\nevaluation_strategy: steps\n{}\n",
    "axolotl.yaml": "base_model: a/b\nadapter: lora\nsequence_len: 512\nval_set_size: 0.1\n{}\n",
}
SAYS = {".sh": "--{0} {1}", ".py": "{0}={1!r}", ".yaml": "{0}: {1}"}


@for_each("name", BEST)
def test_evaluation_stays_on_where_the_best_checkpoint_is_kept(name: str) -> None:
    ending = name[name.index(".") :]
    kept = {name: BEST[name].format(SAYS[ending].format("load_best_model_at_end", True))}
    assert changed(kept, eval__enabled=False) is None
    assert changed({name: BEST[name].format(SAYS[ending].format("seed", 7))}, eval__enabled=False)


@for_each("measure, is_written", [("loss", True), ("eval_loss", True), ("cer", False)])
def test_predictions_stay_where_another_measure_chooses_the_checkpoint(measure: str, is_written: bool) -> None:
    text = BEST["run.py"].format(f"metric_for_best_model='{measure}'")
    assert (changed({"run.py": text}, eval__loss_only=True) is not None) is is_written


def test_liger_is_not_added_to_a_model_that_generates_when_it_is_evaluated() -> None:
    text = "from transformers import Seq2SeqTrainingArguments\nargs = Seq2SeqTrainingArguments('o', per_device_train_batch_size=8{})\n"
    assert changed({"run.py": text.format("")}, train__loss_kernel="liger")
    assert changed({"run.py": text.format(", predict_with_generate=True")}, train__loss_kernel="liger") is None


# -- how an option is written


@for_each("joined", [True, False])
def test_an_added_option_is_joined_to_its_value_where_all_are(joined: bool) -> None:
    """A parser of one's own after a file may split each word at its equals sign."""
    sign = "=" if joined else " "
    text = f"accelerate launch run.py conf.yaml \\\n--output_dir{sign}o \\\n--per_device_train_batch_size{sign}4 \\\n--max_length=1024\n"
    made = changed({"run.sh": text}, train__micro_batch_size=2, train__gradient_accumulation=2)
    assert made is not None
    assert f"--gradient_accumulation_steps{sign}2" in made["run.sh"]


# -- prime-rl: each file has keys of its own

TRAINER = '[model]\nname = "a/b"\n\n[optim]\ntype = "{}"\nlr = 1e-5\n'
ENGINE = '[model]\nname = "a/b"\nmax_model_len = 8192\n\n[parallel]\ntp = 2\n'
WHOLE = "seq_len = 8192\n\n[trainer.optim]\nlr = 1e-5\n\n[orchestrator]\nbatch_size = 64\n\n[inference.parallel]\ntp = 2\n"


def test_offload_is_not_beside_the_optimizers_own() -> None:
    made = changed({"train.toml": TRAINER.format("adamw")}, fsdp__offload=True)
    assert made is not None
    assert "fsdp_cpu_offload = true\n" in made["train.toml"] and "optim_cpu_offload = false\n" in made["train.toml"]
    assert changed({"train.toml": TRAINER.format("muon")}, fsdp__offload=True) is None


def test_the_engines_keys_go_into_its_file() -> None:
    alone = {"train.toml": TRAINER.format("adamw")}
    assert changed(alone, rollout__gpu_memory_utilization=0.8) is None
    assert changed(alone, rollout__max_model_len=4096) is None
    made = changed({**alone, "infer.toml": ENGINE}, rollout__max_model_len=4096, rollout__gpu_memory_utilization=0.8)
    assert made is not None and made.keys() == {"infer.toml"}
    assert "max_model_len = 4096" in made["infer.toml"] and "gpu_memory_utilization = 0.8" in made["infer.toml"]
    assert "[inference" not in made["infer.toml"]


def test_a_length_for_all_stays_one() -> None:
    made = changed({"rl.toml": WHOLE}, train__max_seq_len=4096)
    assert made is not None and made["rl.toml"] == WHOLE.replace("8192", "4096")
    made = changed({"rl.toml": WHOLE.replace("seq_len = 8192\n\n", "")}, train__max_seq_len=4096)
    assert made is not None and made["rl.toml"].startswith("seq_len = 4096\n")


@for_each("attention, is_written", [("flash_attention_2", True), ("sdpa", False)])
def test_rows_are_split_by_flash_attention_alone(attention: str, is_written: bool) -> None:
    text = TRAINER.format("adamw").replace('name = "a/b"\n', f'name = "a/b"\nattn = "{attention}"\n')
    assert (changed({"train.toml": text}, parallel__context=2) is not None) is is_written
