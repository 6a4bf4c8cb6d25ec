"""Which trainer a command starts, where names and options of several programs fit; and that a log shows such a command."""

from __future__ import annotations

from books_of_logs import read as read_log
from collected import for_each

from diagnose.adapters import config_reader
from diagnose.adapters.formats.settings import ConfigSource, Settings
from diagnose.adapters.schema import framework_tables
from diagnose.facts import FactBook
from diagnose.parse.model.reading import Reading
from diagnose.plan.edits import knob_edits
from diagnose.rule_files import table

LOST = "torch.OutOfMemoryError: CUDA out of memory."


def settings(*files: tuple[str, str]) -> Settings:
    return config_reader.read([ConfigSource(name, text.encode()) for name, text in files], Reading(), FactBook())


def framework(*files: tuple[str, str]) -> str | None:
    return FactBook(settings(*files).facts).word("train.framework")


@for_each(
    "command, name",
    [
        # the name of a script is OpenRLHF's, its options are ColossalChat's
        ("torchrun train_dpo.py --pretrain a/b --plugin 3d --tp 2 --zero_stage 1 --lora_config l.json", "colossalai"),
        ("deepspeed --module openrlhf.cli.train_dpo --pretrain a/b --zero_stage 2 --max_len 2048", "openrlhf"),
        ("python3 -m verl.trainer.main worker.actor.model.model_path=a/b worker.rollout.n=5", "easyr1"),
        ("python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=a/b data.train_batch_size=8", "verl"),
        ("xtuner train c.py --cfg-options train_dataloader.batch_size=2", "xtuner"),
        ("python mmdetection/tools/train.py c.py --cfg-options train_dataloader.batch_size=2", "mmdet"),
        ("torchrun xtuner/v1/train/cli/sft.py --load-from a/b --chat_template qwen3", "xtuner_v1"),
        ("colossalai run --nproc_per_node 2 train_sft.py --pretrain a/b --plugin zero2", "colossalai"),
        ("./zipformer/train.py --world-size 2 --max-duration 600", "icefall"),
    ],
)
def test_a_command_is_that_of_the_program_that_has_its_options(command: str, name: str) -> None:
    assert framework(("run.sh", f"{command}\n")) == name


@for_each("name", framework_tables.trainers())
def test_a_log_shows_the_commands_of_programs_by_name(name: str) -> None:
    """A command that begins with a program's own name stands in a log behind a prompt, whatever the program."""
    programs = table("programs")["commands"]
    for command in framework_tables.signs(name).get("commands", ()):
        first, _, rest = command.partition(" ")
        if rest and first in programs and not rest.endswith("="):
            assert read_log(f"$ {command} --x 1 a.yaml", LOST).commands, command


def test_the_name_of_an_optimizer_is_not_written_for_an_unknown_program() -> None:
    """Which other names the program has is not known; a number of its may be changed."""
    read = settings(
        ("mine.yaml", "batch_size: 8\nepochs: 3\nlearning_rate: 1\noptimizer: {name: decoupled_adam, type: adam}\nprecision: fp32\n")
    )
    book = FactBook(read.facts)
    assert book.word("train.optimizer") == "adamw"
    assert knob_edits.edits(read.documents, book, {"train.optimizer": "adamw_8bit"}) is None
    assert knob_edits.edits(read.documents, book, {"train.micro_batch_size": 2})


def test_keys_of_nemos_first_version_are_none_of_a_recipe() -> None:
    read = settings(("run.sh", "nemo llm finetune --factory llama3_8b data.micro_batch_size=1 trainer.devices=2\n"))
    changes = knob_edits.edits(read.documents, FactBook(read.facts), {"train.gradient_checkpointing": "enabled"})
    assert changes and changes[0].key == "model.config.recompute_granularity"


def test_a_key_of_a_configuration_is_added_behind_the_option_that_overrides_it() -> None:
    read = settings(("run.sh", "xtuner train internlm2_chat_7b_qlora_oasst1_e3 --deepspeed deepspeed_zero2\n"))
    (change,) = knob_edits.edits(read.documents, FactBook(read.facts), {"train.max_seq_len": 1024}) or ()
    assert change.written == "--cfg-options train_dataloader.dataset.max_length=1024"


def test_the_module_names_the_sharding_and_the_command_has_it() -> None:
    """`deepspeed` is an option of the program: it is never written into the configuration in Python."""
    module = "model = dict(type=SupervisedFinetune, llm=dict(type=A.from_pretrained, pretrained_model_name_or_path='a/b'))\n"
    read = settings(("c.py", module), ("run.sh", "NPROC_PER_NODE=8 xtuner train c.py --deepspeed deepspeed_zero2\n"))
    changes = knob_edits.edits(read.documents, FactBook(read.facts), {"zero.stage": 3, "zero.offload_param": "cpu"})
    assert changes and {(change.target, change.to) for change in changes} == {("run.sh", "deepspeed_zero3_offload")}
