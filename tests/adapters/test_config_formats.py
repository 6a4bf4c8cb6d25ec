"""The readers of YAML, JSON, shell and Python: exact places, no surprises from YAML 1.1, nothing run, nothing raised."""

from __future__ import annotations

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnose.adapters.documents.open_config import open_document
from diagnose.adapters.documents.text_forms import detect_form
from diagnose.adapters.formats import json_file, yaml_file
from diagnose.adapters.formats.config_value import Leaf, Unreadable
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.adapters.launch.launch_command import Launch, launches
from diagnose.adapters.python import python_file
from diagnose.adapters.schema.config_kinds import python_classes


def by_key(leaves: list[Leaf]) -> dict[str, Leaf]:
    return {leaf.key: leaf for leaf in leaves}


def run(text: str) -> list[Launch]:
    return [launch for launch in launches(text) if launch.program not in ("", "export") or launch.orphan]


# -- yaml


def test_yaml_values_stand_where_they_were_written() -> None:
    """Edits splice by these offsets, so they must cut out exactly the value, after any unicode and line end."""
    text = '# 显存 😀\r\na: 1  # one\r\nb:\r\n  c: "x: y"\r\n  d: [1, 2]\r\ne: |\r\n  block\r\nf: 5e8\r\n'
    leaves = by_key(yaml_file.Reader(text).leaves())
    assert {key: text[leaf.start : leaf.end] for key, leaf in leaves.items() if leaf.shape == "scalar"} == {
        "a": "1",
        "b.c": '"x: y"',
        "e": "|\r\n  block",
        "f": "5e8",
    }
    assert (leaves["b.d"].written, leaves["b.d"].items) == ("[1, 2]", ("1", "2"))
    assert (leaves["f"].line, leaves["f"].column) == (8, 1)


def test_yaml_keeps_words_that_yaml_1_1_turns_into_other_things() -> None:
    leaves = by_key(yaml_file.Reader("lr: 1e-5\nflag: on\nword: no\nnone: ~\nempty:\n").leaves())
    assert [leaves[key].text for key in ("lr", "flag", "word", "none", "empty")] == ["1e-5", "on", "no", None, None]


def test_of_duplicate_keys_the_last_counts_and_is_remarked() -> None:
    reader = yaml_file.Reader("a: 1\nb: 2\na: 3\n")
    assert by_key(reader.leaves())["a"].text == "3"
    assert [(remark.code, remark.line) for remark in reader.remarks] == [("duplicate_key", 3)]


def test_merge_keys_bring_their_values() -> None:
    leaves = by_key(yaml_file.Reader("base: &b {x: 1, y: 2}\nmine:\n  <<: *b\n  y: 3\n").leaves())
    assert (leaves["mine.x"].text, leaves["mine.y"].text) == ("1", "3")


@for_each(
    "text, line",
    [("a: 1\n\tb: 2\n", 2), ("a: [1\nb: 2\n", 2), ("a: b: c\n", 1), ("- 1\n- 2\n", 1), ("just words\n", 1)],
)
def test_broken_yaml_names_its_line(text: str, line: int) -> None:
    with pytest.raises(Unreadable) as caught:
        yaml_file.Reader(text).leaves()
    assert caught.value.line == line


def test_a_yaml_bomb_is_refused_quickly() -> None:
    """Nine levels of nine aliases would be 387 million leaves."""
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(f"a{i}: &a{i} [{','.join([f'{{k: *a{i - 1}}}'] * 9)}]\n" for i in range(1, 10))
    with pytest.raises(Unreadable, match="too large"):
        yaml_file.Reader(bomb).leaves()


def test_deep_nesting_is_refused_in_both_forms() -> None:
    for text, reader in (("a: " + "[" * 5000 + "]" * 5000, yaml_file.Reader), ('{"a":' * 5000 + "1" + "}" * 5000, json_file.Reader)):
        with pytest.raises(Unreadable):
            reader(text).leaves()


# -- json


def test_json_passes_comments_and_trailing_commas_with_exact_places() -> None:
    text = '// top\n{\n  "a": {"b": 5e8, /* x */ "c": "é\\n",},  # end\n  "d": [1, {"e": null}],\n}\n'
    leaves = by_key(json_file.Reader(text).leaves())
    assert text[leaves["a.b"].start : leaves["a.b"].end] == "5e8"
    assert leaves["a.c"].text == "é\n"
    assert (leaves["d.1.e"].shape, leaves["d.1.e"].line) == ("null", 4)


@for_each("text, place", [('{"a": 1 "b": 2}', (1, 9)), ('{"a"\n:}', (2, 2)), ('{"a": 1', (1, 8)), ('{"a": 1} x', (1, 10))])
def test_broken_json_names_its_place(text: str, place: tuple[int, int]) -> None:
    with pytest.raises(Unreadable) as caught:
        json_file.Reader(text).leaves()
    assert (caught.value.line, caught.value.column) == place


# -- shell


def test_continued_commands_variables_and_arrays_are_read_as_bash_reads_them() -> None:
    (launch,) = run("M=a/b\nARGS=(\n  --x 1  # why\n  --y 'two words'\n)\npython t.py \"${ARGS[@]}\" \\\n  --m ${M:-none} --n=$M\n")
    assert [(flag.name, flag.value) for flag in launch.flags] == [("x", "1"), ("y", "two words"), ("m", "a/b"), ("n", "a/b")]


def test_a_comment_inside_a_continued_command_cuts_it() -> None:
    """bash ends the comment at the line end, backslash or not: the rest is a command of its own."""
    first, rest = run("python t.py \\\n  --a 1 \\\n  # --b 2 \\\n  --c 3\n")
    assert [flag.key for flag in first.flags] == ["--a"]
    assert rest.orphan
    assert [flag.key for flag in rest.flags] == ["--c"]


def test_a_here_document_fills_a_variable_and_keeps_its_places() -> None:
    text = "read -r -d '' cmd <<EOF\nopenrlhf.cli.train_sft \\\n   --max_len 2048 \\\n   --bf16\nEOF\ndeepspeed --module $cmd\n"
    launch = run(text)[-1]
    assert (launch.launcher, launch.program) == ("deepspeed", "openrlhf.cli.train_sft")
    flag = launch.flags[0]
    assert text[flag.start : flag.end] == "2048"


def test_environments_belong_to_their_commands() -> None:
    server, trainer = run("export A=1\nCUDA_VISIBLE_DEVICES=0 vllm serve m &\nCUDA_VISIBLE_DEVICES=1,2 torchrun --nproc_per_node 2 t.py\n")
    assert {name: word.text for name, word in server.env.items()} == {"A": "1", "CUDA_VISIBLE_DEVICES": "0"}
    assert trainer.env["CUDA_VISIBLE_DEVICES"].text == "1,2"


def test_what_only_a_running_shell_knows_is_unsure() -> None:
    (launch,) = run("python t.py --n $(nproc) --m $1 --k 3\n")
    assert [flag.sure for flag in launch.flags] == [False, False, True]


@for_each(
    "text, launcher, program",
    [
        ("accelerate launch --config_file a.yaml --num_processes 8 -m axolotl.cli.train c.yaml", "accelerate", "axolotl.cli.train"),
        ("torchrun --standalone --nproc_per_node=4 train.py --x 1", "torchrun", "train.py"),
        ("python -m torch.distributed.run --nproc-per-node 2 train.py", "torchrun", "train.py"),
        ("deepspeed --num_gpus 2 src/train.py --deepspeed d.json", "deepspeed", "src/train.py"),
        ("ray job submit --address=x -- python3 -m openrlhf.cli.train_ppo_ray --zero_stage 3", "ray", "openrlhf.cli.train_ppo_ray"),
        ("FORCE_TORCHRUN=1 llamafactory-cli train x.yaml", "", "llamafactory-cli train"),
        ("nohup env A=1 python3.11 -u train.py > log 2>&1 &", "python", "train.py"),
        ("srun --gpus 8 -N 2 python train.py", "python", "train.py"),
        ('bash -c "cd /x && python train.py --a 1"', "python", "train.py"),
    ],
)
def test_launchers_are_told_from_what_they_launch(text: str, launcher: str, program: str) -> None:
    launch = run(text)[-1]
    assert (launch.launcher, launch.program) == (launcher, program)


# -- python


def test_a_script_is_read_and_never_run() -> None:
    text = (
        "import torch\nN = 4\nraise SystemExit\n"
        "m = AutoModelForCausalLM.from_pretrained('a/b', torch_dtype=torch.bfloat16)\n"
        "args = SFTConfig(per_device_train_batch_size=N, gradient_accumulation_steps=2 * 4, learning_rate=lr)\n"
    )
    leaves = by_key(python_file.Reader(text).read(python_classes()).leaves)
    assert leaves["per_device_train_batch_size"].text == "4"
    assert leaves["gradient_accumulation_steps"].text == "8"
    assert leaves["learning_rate"].shape == "unsure"
    assert (leaves["from_pretrained.model"].text, leaves["from_pretrained.torch_dtype"].text) == ("a/b", "bfloat16")


def test_a_call_written_as_a_dict_of_its_type_is_a_call() -> None:
    """Configurations of the mmengine family (XTuner) name what is to be called later."""
    text = (
        "name = 'a/b'\nmodel = dict(type=SupervisedFinetune, llm=dict(type=AutoModelForCausalLM.from_pretrained,\n"
        "    pretrained_model_name_or_path=name, quantization_config=dict(type=BitsAndBytesConfig, load_in_4bit=True)))\n"
    )
    leaves = by_key(python_file.Reader(text).read(python_classes()).leaves)
    assert (leaves["from_pretrained.model"].text, leaves["BitsAndBytesConfig.load_in_4bit"].text) == ("a/b", "True")


def test_a_name_bound_twice_is_not_guessed() -> None:
    leaves = by_key(python_file.Reader("B = 4\nB = 8\nargs = SFTConfig(per_device_train_batch_size=B)\n").read(python_classes()).leaves)
    assert leaves["per_device_train_batch_size"].shape == "unsure"


def test_offsets_in_python_count_characters_not_bytes() -> None:
    text = 'args = SFTConfig(run_name="显存", output_dir="x", max_length=7)\n'
    leaf = by_key(python_file.Reader(text).read(python_classes()).leaves)["max_length"]
    assert text[leaf.start : leaf.end] == "7"


def test_a_model_moved_to_cuda_before_the_trainer_is_seen() -> None:
    load = "m = AutoModelForCausalLM.from_pretrained('a/b')\n"
    moved = python_file.Reader(load + "m = m.to('cuda')\na = GRPOConfig()\nt = GRPOTrainer(model=m, args=a)\n").read(python_classes())
    still = python_file.Reader("a = GRPOConfig()\n" + load + "t = GRPOTrainer(model=m, args=a)\n").read(python_classes())
    assert (moved.cuda_before_shard, moved.cuda_at[0], moved.args_after_model) == (True, 2, True)
    assert (still.cuda_before_shard, still.args_after_model) == (False, False)


def test_another_librarys_trainer_is_not_transformers() -> None:
    text = "import lightning.pytorch as pl\nt = pl.Trainer(devices=8)\n"
    assert python_file.Reader(text).read(python_classes()).classes == {}


# -- anything


@settings(max_examples=120, deadline=None)
@given(st.text(alphabet="ab:-#\n\t {}[]'\"\\$`()<>|&=*,.0&!%@é", max_size=120))
def test_no_text_raises(text: str) -> None:
    """Whatever a stranger pastes is read or refused with a notice."""
    found = open_document(ConfigSource("x", text.encode()))
    assert found.kind != "unknown" or found.notices or found.form == "shell"


@for_each(
    "data, code",
    [
        (b"", "config.empty"),
        (b"\0\0\0\0", "config.binary"),
        (b"\x7fELF\0\1", "config.binary"),
        (b"x" * 2_000_001, "config.too_large"),
        (b"a: [1\n", "config.not_yaml"),
        (b'{"a": }', "config.not_json"),
        (b"colour: red\nsize: 3\n", "config.unknown_kind"),
    ],
)
def test_unusable_files_are_one_notice(data: bytes, code: str) -> None:
    found = open_document(ConfigSource("x", data))
    assert [(notice.level, notice.code) for notice in found.notices] == [("error", code)]
    assert found.kind == "unknown"


def test_a_command_below_a_first_line_of_python_is_a_command() -> None:
    """People keep the first line of the script that the file once was; what cannot be Python and starts a program is a shell's."""
    command = "\nCUDA_VISIBLE_DEVICES=0,1 accelerate launch train.py \\\n    --per_device_train_batch_size 2\n"
    assert detect_form("#!/usr/bin/env python3.10\n" + command, lambda _: False)[0] == "shell"
    assert (
        detect_form("#!/usr/bin/env python3\nimport os\nos.system('accelerate launch train.py --lr 1')\n", lambda _: False)[0] == "python"
    )
