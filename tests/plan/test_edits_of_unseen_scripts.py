"""What edits of scripts that nobody had looked at did wrong: each test fails without its mechanism."""

from __future__ import annotations

from collections.abc import Mapping

from collected import for_each

from diagnose.adapters import config_reader
from diagnose.adapters.formats.settings import ConfigSource, Settings
from diagnose.facts import FactBook, Value
from diagnose.parse.model.reading import Reading
from diagnose.plan.edits import knob_edits
from diagnose.plan.edits.setting_conflicts import broken_constraints
from diagnose.plan.patch import patching

ENGINE = '{"train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": %s, "zero_optimization": {"stage": 2}}'
COMMAND = "deepspeed --num_gpus 4 run_clm.py --model_name_or_path m --do_train --block_size 512 %s --output_dir o --deepspeed ds.json\n"


def read(files: Mapping[str, str]) -> Settings:
    return config_reader.read([ConfigSource(name, text.encode()) for name, text in files.items()], Reading(), FactBook())


def keys(files: Mapping[str, str], changes: Mapping[str, Value]) -> set[str]:
    """What the edits of these knobs set."""
    found = read(files)
    edits = knob_edits.edits(found.documents, FactBook(found.facts), changes)
    return {f"{edit.target}: {edit.key} {edit.to}" for edit in edits or ()}


def broken(files: Mapping[str, str], changes: Mapping[str, Value]) -> int:
    """How many constraints of the job's programs only these changes break."""
    found = read(files)
    book, programs = FactBook(found.facts), {document.framework for document in found.documents}
    return len(broken_constraints(book.changed(changes), programs) - broken_constraints(book, programs))


@for_each(
    "options, steps, changes, expected",
    [
        ("--per_device_train_batch_size 8", '"auto"', {"train.micro_batch_size": 2},
         {"go.sh: --per_device_train_batch_size 2", "ds.json: train_micro_batch_size_per_gpu 2"}),
        ("--per_device_train_batch_size 8", "1", {"train.gradient_accumulation": 4},
         {"go.sh: --gradient_accumulation_steps 4", "ds.json: gradient_accumulation_steps 4"}),
    ],
)  # fmt: skip
def test_a_trainer_and_its_engine_s_file_stay_in_step(options: str, steps: str, changes: Mapping[str, Value], expected: set[str]) -> None:
    """transformers refuses to start where the DeepSpeed file says another number than its own option, or than its default."""
    assert keys({"go.sh": COMMAND % options, "ds.json": ENGINE % steps}, changes) == expected


@for_each(
    "command, changes",
    [
        ("swift infer --model Qwen/Qwen2.5-7B", {"train.loss_kernel": "liger"}),
        ("llamafactory-cli export --model_name_or_path m --template qwen", {"eval.accumulation_steps": 1}),
        ("python -m openrlhf.cli.serve_rm --reward_pretrain m --max_len 8192", {"train.gradient_checkpointing": "enabled"}),
        ("trl vllm-serve --model m --max_model_len 4096", {"rollout.prefill_tokens": 2048}),
    ],
)
def test_programs_that_train_nothing_take_no_options_of_training(command: str, changes: Mapping[str, Value]) -> None:
    assert not keys({"go.sh": command + "\n"}, changes)


@for_each("changed, added", [("use_liger_kernel=True", {"train.loss_kernel": "liger"}), ("optim=", {"train.optimizer": "adamw_8bit"})])
def test_a_keyword_goes_into_the_call_whose_class_has_it(changed: str, added: Mapping[str, Value]) -> None:
    """Not into the first call that the same parser reads."""
    script = (
        "from trl import GRPOConfig, GRPOTrainer, ModelConfig\n"
        "model = ModelConfig(model_name_or_path='m', use_peft=True, load_in_4bit=True)\n"
        "args = GRPOConfig(output_dir='o', num_generations=4)\n"
        "GRPOTrainer(model='m', args=args).train()\n"
    )
    found = read({"train.py": script})
    edits = knob_edits.edits(found.documents, FactBook(found.facts), added)
    _, model, grpo, *_ = patching.texts(found.documents, edits or ())["train.py"].splitlines()
    assert changed in grpo and model in script


@for_each(
    "config, expected",
    [
        ("", {"lora_r 16", "lora_alpha 32", "lora_target_linear true"}),
        ("lora_r: 64\nlora_alpha:\nlora_target_modules: [q_proj]\n", {"lora_alpha 32"}),
    ],
)
def test_adapters_get_what_they_lack_and_keep_what_they_have(config: str, expected: set[str]) -> None:
    base = f"base_model: m\ndatasets: [{{path: d, type: alpaca}}]\nsequence_len: 512\n{config}"
    set_keys = {key.partition(": ")[2] for key in keys({"a.yml": base}, {"train.finetuning": "lora"})}
    assert set_keys == {"adapter lora", *expected}


VERL = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.max_prompt_length=1024 data.max_response_length=4096 "


@for_each(
    "files, changes",
    [
        ({"a.sh": VERL + "actor_rollout_ref.model.path=m actor_rollout_ref.rollout.n=4\n"}, {"rollout.max_model_len": 4096}),
        ({"a.sh": "swift sft --model m --train_type full --deepspeed zero3\n"}, {"parallel.tensor": 2}),
        ({"a.yaml": "model_name_or_path: m\nnum_generations: 8\nper_device_eval_batch_size: 8\n",
          "b.sh": "torchrun --nproc_per_node 2 -m trl grpo --config a.yaml\n"}, {"eval.batch_size": 1}),
    ],
)  # fmt: skip
def test_what_the_programs_refuse_is_refused(files: Mapping[str, str], changes: Mapping[str, Value]) -> None:
    """A context shorter than prompt and answer, AutoTP beside ZeRO-3, an evaluation batch that is no whole number of groups."""
    assert broken(files, changes)


def test_a_number_counts_the_cards_of_the_same_plan() -> None:
    """verl's older micro batch is one over all cards: a row per card is eight where eight cards are asked for at once."""
    command = (
        VERL + "actor_rollout_ref.model.path=m actor_rollout_ref.actor.ppo_micro_batch_size=16 trainer.n_gpus_per_node=4 trainer.nnodes=1\n"
    )
    found = keys({"a.sh": command}, {"train.micro_batch_size": 1, "parallel.world": 8})
    assert {"a.sh: actor_rollout_ref.actor.ppo_micro_batch_size 8", "a.sh: trainer.n_gpus_per_node 8"} == found


@for_each(
    "files, name, release",
    [
        ({"a.sh": "docker run vllm/vllm-openai:v0.6.6 --model m --max-model-len 4096\n"}, "version.vllm", "0.6.6"),
        ({"a.sh": "pip install -q trl[peft]==0.17.0 peft\npython train.py\n"}, "version.trl", "0.17.0"),
        ({"a.sh": "# pip install trl==0.9.6\npython train.py\n"}, "version.trl", None),
        ({"a.sh": "docker run nvcr.io/nvidia/vllm:26.05-py3 vllm serve m\n"}, "version.vllm", None),
        ({"a.sh": "docker run lmsysorg/sglang:v0.4.6 x\ndocker run lmsysorg/sglang:v0.5.4 x\n"}, "version.sglang", None),
    ],
)
def test_the_release_that_a_config_states_is_known(files: Mapping[str, str], name: str, release: str | None) -> None:
    version = FactBook(read(files).facts).version(name)
    assert (None if version is None else version.text) == release
