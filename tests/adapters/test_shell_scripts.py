"""Launch scripts are read as their shell reads them, and nothing in them is run."""

from __future__ import annotations

from contextlib import suppress

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from pace import within
from sweep import sample

from diagnose.adapters import config_reader
from diagnose.adapters.formats.config_value import Unreadable
from diagnose.adapters.formats.settings import ConfigSource, Settings
from diagnose.adapters.launch.flags import Flag
from diagnose.adapters.launch.launch_command import Launch, launches, read_script
from diagnose.adapters.shell.shell_arithmetic import evaluate, strip_affix
from diagnose.facts import FactBook
from diagnose.parse.model.reading import Reading
from diagnose.units import Size


def run(text: str) -> list[Launch]:
    return [launch for launch in launches(text) if launch.flags]


def flags(text: str) -> dict[str, str | None]:
    """Of the last command the options with what they hold; `?` for what only a running shell knows."""
    return {flag.key.lstrip("-"): flag.value if flag.sure else "?" for flag in run(text)[-1].flags}


def read(text: str) -> Settings:
    return config_reader.read([ConfigSource("run.sh", text.encode())], Reading(), FactBook())


@for_each("blank", ["\t", "\r", " ", "\x0b"])
def test_a_script_that_begins_with_a_blank_is_read(blank: str) -> None:
    read(f"{blank}\rtorchrun --nproc_per_node 8 chat.py --max_seq_len 512 --max_batch_size 4\n{blank}\n")


# -- what words become


@for_each(
    "text, found",
    [
        ("python t.py --x ${X:-4}", "4"),
        ("X=8\npython t.py --x ${X:-4}", "8"),
        ("X=\npython t.py --x ${X:-4}", "4"),
        ("Y=5\npython t.py --x ${X:-${Y:-4}}", "5"),
        (": ${X:=4}\npython t.py --x $X", "4"),
        ("X=8\npython t.py --x ${X:+3}", "3"),
        ("A=2; B=3\npython t.py --x $((A * B + 1))", "7"),
        ("A=2\npython t.py --x $((A * UNKNOWN))", "?"),
        ("N=8\npython t.py --x $(expr 16 / $N)", "2"),
        ("N=8\npython t.py --x $(expr $N \\* 4)", "32"),
        ("python t.py --x $(expr length abc)", "?"),
        ("M=org/name-7b\npython t.py --x ${M##*/}", "name-7b"),
        ("F=a.yaml\npython t.py --x ${F%.yaml}", "a"),
        ("A=(1 2 3)\npython t.py --x ${A[1]}", "2"),
        ("A=(1 2 3)\npython t.py --x ${#A[@]}", "3"),
        ("A=(1 2 3)\nN=2\npython t.py --x ${A[$N]}", "3"),
        ("A=(1 2 3)\nfor i in 0 1; do\npython t.py --x ${A[$i]}\ndone", "?"),
        ('A=(4 4)\nfor i in "${!A[@]}"; do\npython t.py --x ${A[$i]}\ndone', "4"),
        ("python t.py --x $(nproc)", "?"),
        ("python t.py --x `nproc`", "?"),
        ("python t.py --x $X", "?"),
        ("python t.py --x 'a $X'", "a $X"),
        ('X=b\npython t.py --x "a $X"', "a b"),
        ("python t.py --x a\\\n  --y 1", "a"),
        ("read X\npython t.py --x $X", "?"),
        ("source env.sh\npython t.py --x $X", "?"),
        ("CMD='python t.py --x 1'\neval $CMD", "1"),
        ("sh -c 'python t.py --x 1'", "1"),
        ("docker run --gpus all -e A=1 image bash -c 'cd /w && python t.py --x 1'", "1"),
        ("ssh host \"python t.py --x 1\"", "1"),
        ("python t.py --x 1 2>&1 | tee log", "1"),
        ("cd a && env A=1 nohup python t.py --x 1 > log 2>&1 &", "1"),
        ("!sudo A=1 python t.py --x 1", "1"),
        ("python t.py --x 1\\\n--y 2", "1"),
        ("python t.py --x a\\\nb", "ab"),
        ("python t.py x=1\\\ndata.y=2", "1"),
    ],
)  # fmt: skip
def test_what_a_word_becomes(text: str, found: str | None) -> None:
    assert (flags(text).get("x") if run(text) else None) == found


@for_each(
    "printed",
    [
        "$(nvidia-smi -L | wc -l)",
        "`nvidia-smi --list-gpus | grep -c GPU`",
        '$(python -c "import torch; print(torch.cuda.device_count())")',
        "$(shuf -i 10000-65535 -n 1)",
    ],
)
@for_each("start", ["torchrun --nproc_per_node {}", "N={}\ntorchrun --nproc_per_node $N"])
def test_a_command_whose_output_is_a_value_is_one_word(start: str, printed: str) -> None:
    """Its own words are no options of the launcher, and its program is not the one that trains."""
    program, launcher = read(f"{start.format(printed)} train/sft.py --per_device_train_batch_size 1").documents
    assert [entry.key for entry in launcher.entries] == ["--nproc_per_node"]
    assert (program.entry, [entry.key for entry in program.entries]) == ("train/sft.py", ["--per_device_train_batch_size"])


def test_sums_and_patterns() -> None:
    held = {"A": "6"}
    assert evaluate("(A + 2) * -3 / 5", held.get) == -4
    assert evaluate("2 ** 10 % 1000", held.get) == 24
    assert [evaluate(text, held.get) for text in ("1/0", "B", "((", "9" * 30, "2**99", "A B")] == [None] * 6
    assert (
        strip_affix("a/b/c", "##", "*/"),
        strip_affix("a/b/c", "#", "*/"),
        strip_affix("a.b.c", "%", ".*"),
        strip_affix("a.b.c", "%%", ".*"),
    ) == (
        "c",
        "b/c",
        "a.b",
        "a",
    )


# -- branches, loops, functions


@for_each(
    "text, found",
    [
        ("if [ $D = 1 ]; then X=1; else X=2; fi\npython t.py --x $X", "?"),
        ("if [ $D = 1 ]; then X=2; else X=2; fi\npython t.py --x $X", "2"),
        ("X=1\nif [ $D = 1 ]; then X=2; fi\npython t.py --x $X", "?"),
        ('if [ -z "$X" ]; then X=4; fi\npython t.py --x $X', "4"),
        ('[ -z "$X" ] && X=4\npython t.py --x $X', "4"),
        ("X=1\n[[ $D == 1 ]] && X=2\npython t.py --x $X", "?"),
        ("X=8\nwhile [ $# -gt 0 ]; do\n case $1 in\n  --x) X=$2; shift 2;;\n  *) break;;\n esac\ndone\npython t.py --x $X", "8"),
        ("case $D in\n a) X=1;;\n *) X=2;;\nesac\npython t.py --x $X", "?"),
        ("for X in 1 2; do python t.py --x $X; done", "?"),
        ("for X in 7; do python t.py --x $X; done", "7"),
        ("f() { python t.py --x $1; }\nf 5", "5"),
        ("f() { python t.py --x $X; }\nX=5\nf", "5"),
        ("function f {\n  local X=3\n  python t.py --x $X\n}\nf", "3"),
        ("f() { f; }\nf\npython t.py --x 1", "1"),
    ],
)
def test_what_branches_leave_behind(text: str, found: str) -> None:
    """What the arms agree on is known; what the caller of the script may say instead is a default."""
    assert flags(text)["x"] == found


def test_of_two_launches_in_a_branch_only_what_they_share_is_known() -> None:
    text = "if [ $A ]; then\n  torchrun t.py --x 1 --y 2\nelse\n  torchrun t.py --x 1 --y 3\nfi\n"
    assert [[flag.sure for flag in launch.flags] for launch in run(text)] == [[True, False], [True, False]]


def test_a_lone_launch_in_a_branch_is_believed() -> None:
    assert flags("if [ $A ]; then\n  torchrun t.py --x 1\nfi\n")["x"] == "1"


def test_conditional_items_of_an_array_are_unsure() -> None:
    found = flags('A=(--x 1)\nif [ $D ]; then A+=(--y 2); fi\npython t.py "${A[@]}"\n')
    assert (found["x"], found["y"]) == ("1", "?")


def test_patterns_of_case_are_no_options_that_were_cut_off() -> None:
    told = read("while :; do\ncase $1 in\n --per_device_train_batch_size) shift;;\nesac\ndone\ntorchrun t.py --output_dir o --bf16\n")
    assert [notice.code for notice in told.notices if notice.code == "config.cut_off"] == []


@pytest.mark.parametrize("cut_by", ["  # why \\\n", "  --a 1 \\ \n", "  --a 1\n"])
def test_a_command_that_is_cut_short_is_said(cut_by: str) -> None:
    """A comment in the middle, a blank after the backslash, a backslash that is missing."""
    told = read(f"torchrun run_clm.py \\\n  --output_dir o \\\n{cut_by}  --per_device_train_batch_size 4\n")
    assert "config.cut_off" in [notice.code for notice in told.notices]
    assert FactBook(told.facts).value("train.micro_batch_size") != 4


@for_each(
    "command, value",
    [
        ("uv run ./train_grpo.py --lr 5e-6", None),  # the name of a script alone is no program that is known
        ("uv run python train_grpo.py --lr 5e-6", "5e-6"),
        ("HF_HOME=/hub torchrun --nproc_per_node 8 train.py --lr 5e-6", "5e-6"),
        ("axolotl train config.yaml --lr 5e-6", "5e-6"),
        ("llamafactory-cli train --lr 5e-6", "5e-6"),
        ("the learning rate --lr 5e-6", None),
    ],
)
def test_a_command_in_a_variable_that_is_only_handed_on_is_read(command: str, value: str | None) -> None:
    found = run(f'NODES=8\nCOMMAND="{command}" sbatch --nodes=$NODES start.sub\n')
    assert [flag.value for launch in found for flag in launch.flags if flag.name == "lr"] == ([value] if value else [])


def test_a_command_in_a_variable_that_is_used_is_read_once() -> None:
    assert len(run('COMMAND="python train.py --lr 5e-6"\n$COMMAND\n')) == 1


def test_carriage_returns_are_no_part_of_words() -> None:
    assert flags("X=4\r\npython t.py \\\r\n  --x $X \\\r\n  --y 2\r\n") == {"x": "4", "y": "2"}


# -- other shells


def test_cmd_and_powershell_are_read() -> None:
    assert flags("@echo off\r\nset X=4\r\nrem python t.py --x 5\r\npython t.py ^\r\n  --x %X%\r\n")["x"] == "4"
    assert flags('$X = 4\n$env:A = "1"\npython t.py `\n  --x $X\n')["x"] == "4"
    assert run('$env:CUDA_VISIBLE_DEVICES = "0,1"\npython t.py --x 1\n')[0].env["CUDA_VISIBLE_DEVICES"].text == "0,1"


# -- files, schedulers, lists


def test_configs_that_a_script_writes_are_configs_of_the_job() -> None:
    text = 'S=3\ncat > ds.json <<EOF\n{"zero_optimization": {"stage": $S}}\nEOF\ntorchrun run_clm.py --output_dir o --deepspeed ds.json\n'
    told = read(text)
    stage = FactBook(told.facts).fact("zero.stage")
    assert stage is not None and (stage.value, stage.witness.source, stage.witness.line) == (3, "run.sh", 3)
    assert [one.name for one in told.inputs] == ["run.sh"]
    assert not [notice for notice in told.notices if notice.code == "config.not_given"]


def test_a_broken_config_in_a_script_names_its_line_of_the_script() -> None:
    told = read('x=1\ncat <<"EOF" > ds.json\n{\n "a" 1}\nEOF\ntorchrun run_clm.py --output_dir o --deepspeed ds.json\n')
    assert [(notice.code, notice.witness.line) for notice in told.notices if notice.witness] == [("config.not_json", 4)]


SLURM = "#!/bin/bash\n#SBATCH --nodes=2 --gres=gpu:a100:8\n#SBATCH --ntasks-per-node=8 --mem=64G\n"


def test_what_the_scheduler_is_asked_for_is_known() -> None:
    book = FactBook(read(f"{SLURM}srun python run_clm.py --output_dir o --bf16\n").facts)
    assert (book.value("parallel.world"), book.value("parallel.nodes"), book.value("host.ram")) == (16, 2, Size.exactly(64 * 2**30))


def test_variables_of_the_scheduler_have_their_values() -> None:
    text = f"{SLURM}srun torchrun --nnodes $SLURM_NNODES --nproc_per_node=$SLURM_GPUS_ON_NODE run_clm.py --output_dir o --bf16\n"
    assert FactBook(read(text).facts).value("parallel.world") == 16


MANIFEST = """apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  containers:
    - name: pytorch
      env: [{name: PYTORCH_CUDA_ALLOC_CONF, value: "expandable_segments:True"}]
      command: ["torchrun", "--nproc_per_node=8", "run_clm.py"]
      args:
        - --output_dir
        - o
        - --per_device_train_batch_size
        - "4"
"""


def test_containers_of_a_manifest_are_launches() -> None:
    told = read(MANIFEST)
    book = FactBook(told.facts)
    assert (book.value("train.micro_batch_size"), book.value("parallel.world"), book.value("alloc.expandable_segments")) == (4, 8, True)
    fact = book.fact("train.micro_batch_size")
    assert fact is not None and fact.witness.line == 11


@for_each(
    "text",
    [
        '["python", "run_clm.py", "--output_dir", "o", "--per_device_train_batch_size", "4"]',
        "- --output_dir\n- o\n- --per_device_train_batch_size\n- '4'\n",
        "--output_dir o\n--per_device_train_batch_size 4\n",
        'import subprocess\nsubprocess.run(["torchrun", "run_clm.py", "--output_dir", "o", "--per_device_train_batch_size", "4"])\n',
        '{"configurations": [{"program": "t.py", "args": ["--output_dir", "o", "--per_device_train_batch_size=4"]}]}',
    ],
)
def test_lists_of_arguments_are_commands(text: str) -> None:
    assert FactBook(read(text).facts).value("train.micro_batch_size") == 4


# -- places and limits


def written(text: str, flag: Flag) -> str:
    return text[flag.start : flag.end]


@given(st.text(alphabet="ab=-$\"'`{}()[]#\\ \n;&|<>:!*@1,fido", max_size=150))
@settings(max_examples=300, deadline=None)
def test_no_script_raises(text: str) -> None:
    """Whatever it is, it is read, and every place lies in the text."""
    for prefix in ("", "X=1\npython t.py ", "if [ $A ]; then ", "cat <<EOF > a.json\n"):
        whole = prefix + text
        try:
            found, reader = read_script(whole)
        except Unreadable:
            continue
        for launch in found:
            for flag in launch.flags:
                assert 0 <= flag.start <= flag.end <= len(whole)
        for file in reader.files:
            assert len(file.chars.starts) == len(file.chars.ends) == len(file.chars.text)


@for_each(
    "text",
    sample([
        "".join(f"f{i}() {{ f{i + 1}; f{i + 1}; f{i + 1}; }}\n" for i in range(40)) + "f40() { python t.py --x 1; }\nf0\n",
        "A=x\n" + "A=$A$A$A$A\n" * 40 + "python t.py --x $A\n",
        "if a; then\n" * 3000 + "python t.py --x 1\n",
        "f() {\n" * 3000 + "python t.py --x 1\n",
        "(" * 50_000,
        "args: [" + '"--a", ' * 50_000 + "]",
        "$((" * 20_000,
        "${" * 100_000,
        ("${" * 450 + "}") * 200,
        "A=(" + "1 " * 30_000 + ")\n" + 'B=("${A[@]}" "${A[@]}")\n' * 50,
        "bash -c '" * 50,
        "case $1 in\n" + "a) X=1;;\n" * 5000 + "esac\n",
    ], 5),
)  # fmt: skip
def test_bombs_are_cheap(text: str) -> None:
    with within(10), suppress(Unreadable):  # too much of it
        launches(text)


def test_what_was_blanked_out_redirects_nothing() -> None:
    (launch,) = launches("torchrun a.py --token <secret redacted> \\\n  --model google/gemma-2b > log.txt\n")
    assert [(flag.name, flag.value) for flag in launch.flags] == [("token", "<secret redacted>"), ("model", "google/gemma-2b")]
