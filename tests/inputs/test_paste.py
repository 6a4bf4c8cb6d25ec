"""Pages that people paste: the config inside is found, with its lines; a log's own lines are none; nothing is opened for a name."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from archives import MESSAGE
from collected import for_each
from hypothesis import given
from hypothesis import strategies as st
from sweep import sample

from diagnose.inputs import pasted_page
from diagnose.pipeline import explain
from diagnose.scan.log_scan import scan
from diagnose.scan.source import Source

YAML = """model_name_or_path: Qwen/Qwen2.5-7B
stage: sft
do_train: true
finetuning_type: full
cutoff_len: 4096
per_device_train_batch_size: 3
"""
JSON = """{
    "train_micro_batch_size_per_gpu": 3,
    "zero_optimization": {
        "stage": 2
    }
}
"""
COMMAND = """torchrun --nproc_per_node 4 train.py \\
    --model_name_or_path Qwen/Qwen2.5-7B \\
    --per_device_train_batch_size 3 \\
    --gradient_accumulation_steps 2
"""
TOML = """[zero_optimization]
stage = 2
overlap_comm = true

[bf16]
enabled = true
"""
PYTHON = """from transformers import TrainingArguments

args = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=3,
)
"""
TRACE = 'Traceback (most recent call last):\n  File "/opt/job/train.py", line 7, in main\n    loss.backward()\n' + MESSAGE


def found(page: str, name: str = "paste.txt") -> list[tuple[str, str]]:
    """Blocks that are taken for configs, and their text without the blank lines that keep their place."""
    return [(one.name, one.data.decode().lstrip("\n")) for one in pasted_page.configs(scan(Source.text(page, name)))]


def told(page: Any, **options: Any) -> dict[str, Any]:
    return explain(page, **options).to_dict("en")


def micro_batch(report: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The first witness of the micro batch: its value, where, and in which line."""
    fact = next(fact for fact in report["facts"] if fact["name"] == "train.micro_batch_size")
    return fact["value"], fact["witness"]["source"], fact["witness"].get("line")


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


FORMS: dict[str, Callable[[str], str]] = {
    "fence": lambda text: f"```\n{text}```\n",
    "fence-with-language": lambda text: f"```yaml\n{text}```\n",
    "tildes": lambda text: f"~~~~ text\n{text}~~~~\n",
    "in-a-list": lambda text: "1. like this\n\n" + "".join(f"   {line}\n" for line in f"```\n{text}```".splitlines()),
    "fold": lambda text: f"<details>\n<summary>config</summary>\n\n```\n{text}```\n</details>\n",
    "indented": lambda text: f"\n{indented(text)}",
    "bare": lambda text: f"\n{text}\n",
    "bare-after-a-colon": lambda text: text,
    "code-span": lambda text: f"\n`{text.rstrip()}`\n",
    "code-span-of-its-own-lines": lambda text: f"`\n{text}`\n",
}


@for_each("form, config, mark", sample(list(product(FORMS, [YAML, JSON, COMMAND], ["", "> ", ">> "])), 20))
def test_a_config_in_a_page_is_used_with_its_line(form: str, config: str, mark: str) -> None:
    """However it is set apart, its value is a fact and the witness is the line of the page."""
    page = (
        f"### Describe the bug\n\nIt fails with my settings:\n{FORMS[form](config)}\nThe error is this one:\n\n```\n{TRACE}```\n\nThanks!\n"
    )
    if mark:
        page = "".join(f"{mark}{line}\n" for line in page.splitlines())
    report = told(Source.text(page, "paste.txt"))
    value, source, line = micro_batch(report)
    assert report["verdict"]["status"] == "oom"
    assert (value, source) == (3, "paste.txt#block-1")
    assert "3" in page.splitlines()[line - 1] and "batch" in page.splitlines()[line - 1]
    assert report["inputs"][0]["kind"] == "log" and len(report["inputs"]) == 2


@for_each("title", ["vllm serve a/b-7b on 2x RTX 3090: no luck", "vllm serve a/b-7b 启动时显存不足"])
def test_a_sentence_that_begins_with_a_program_is_no_command(title: str) -> None:
    """It once took the place of the command in the fence below it."""
    command = "vllm serve c/d-32b --tensor-parallel-size 2 --max-model-len 4096\n"
    assert [text for _, text in found(f"{title}\n```\n{command}```\n")] == [command]


def test_a_python_fence_is_used() -> None:
    assert found(f"My script:\n\n```python\n{PYTHON}```\n\n```\n{TRACE}```\n") == [("paste.txt#block-1", PYTHON)]


@for_each("form", FORMS)
def test_toml_in_a_page_is_used(form: str) -> None:
    """Whatever framework it is of."""
    page = f"It fails with my settings:\n{FORMS[form](TOML)}\nThe error is this one:\n\n```\n{TRACE}```\n\nThanks!\n"
    facts = told(Source.text(page, "paste.txt"))["facts"]
    assert [(one["value"], one["witness"]["source"]) for one in facts if one["name"] == "zero.stage"] == [(2, "paste.txt#block-1")]


def test_every_block_counts_and_only_configs_are_taken() -> None:
    """The number in the name is the one that a reader counts."""
    fences = {"I see this": TRACE, "Environment": "torch 2.5.1\n", "config": YAML, "ds": JSON}
    page = "".join(f"{title}\n\n```\n{text}```\n\n" for title, text in fences.items())
    assert [name for name, _ in found(page)] == ["paste.txt#block-3", "paste.txt#block-4"]


def test_a_config_at_the_very_start_is_found() -> None:
    """First the config, then the log, then a word of thanks."""
    assert [name for name, _ in found(f"{YAML}\n{TRACE}\nThanks in advance!\n")] == ["paste.txt#block-1"]


def test_a_block_of_command_and_output_gives_the_command() -> None:
    """What the command printed is no script."""
    page = f"I ran\n\n```bash\nexport OMP_NUM_THREADS=4\n{COMMAND}2025-06-12 09:15:31 INFO starting --x\n{TRACE}```\n"
    assert [text for _, text in found(page)] == [f"export OMP_NUM_THREADS=4\n{COMMAND}"]


def test_a_command_whose_backslashes_markdown_took_is_whole() -> None:
    """Outside a fence a backslash at the end of a line is a line break; a page in Chinese is known by its headings."""
    bare = COMMAND.replace(" \\\n", "\n").replace("torchrun ", "torchrun  ")
    page = f"多机多卡启动cli：\n\n{bare}\n错误日志：\n{TRACE}"
    assert micro_batch(told(Source.text(page, "paste.txt"))) == (3, "paste.txt#block-1", 5)


@pytest.mark.parametrize("fence", ["", "```\n"])
def test_variables_before_a_command_may_stand_in_lines_of_their_own(fence: str) -> None:
    text = COMMAND.replace("torchrun", 'env NCCL_P2P_DISABLE=1 hostfile="" \\\nCUDA_VISIBLE_DEVICES=0,1 \\\ntorchrun')
    assert micro_batch(told(Source.text(f"My command:\n{fence}{text}{fence}\nand then\n\n{TRACE}", "paste.txt")))[0] == 3


@pytest.mark.parametrize("given", ["per_device_train_batch_size: 7\nstage: sft\ncutoff_len: 2048\n"])
def test_a_given_config_of_the_same_kind_wins(given: str, tmp_path: Path) -> None:
    """The page may be old."""
    (tmp_path / "mine.yaml").write_text(given)
    report = told(Source.text(f"My config:\n\n```yaml\n{YAML}```\n\n```\n{TRACE}```\n", "paste.txt"), configs=[tmp_path / "mine.yaml"])
    assert micro_batch(report)[0] == 7
    assert [one["message"] for one in report["notices"] if one["code"] == "config_not_used"] == [
        "paste.txt#block-1 was not used: another llamafactory config was given or found before it"
    ]


def test_a_given_config_of_another_kind_goes_with_it(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}}')
    report = told(f"My config:\n\n```yaml\n{YAML}```\n\n```\n{TRACE}```\n", configs=[tmp_path / "ds.json"])
    assert micro_batch(report)[:2] == (3, "text#block-1")
    assert next(fact["value"] for fact in report["facts"] if fact["name"] == "zero.stage") == 3


def test_a_page_names_files_and_none_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's page must not make us read a file, even one that lies beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}}')
    page = f"My config:\n\n```yaml\n{YAML}deepspeed: ds.json\n```\n\n```\n{TRACE}```\n"
    (tmp_path / "paste.txt").write_text(page)
    for report in (told(page), told(tmp_path / "paste.txt")):
        assert not [fact for fact in report["facts"] if fact["name"] == "zero.stage" and fact["value"] == 3]
        assert len(report["inputs"]) == 2


def test_a_block_that_the_page_calls_by_name_is_that_file() -> None:
    """The command names train.yaml, and the page shows it."""
    page = f"I run\n\n```bash\nllamafactory-cli train train.yaml\n```\n\nwith `train.yaml`:\n\n```\n{YAML}```\n\n```\n{TRACE}```\n"
    report = told(page)
    assert micro_batch(report)[0] == 3 and "config.not_given" not in [one["code"] for one in report["notices"]]


LOG_LINES = [
    YAML,  # printed by a script as it is
    f"[2025-06-12 09:15:31,118] [INFO] [config.py:1003:print]   json = {JSON}",
    f"INFO:torchtune.utils.logging:Running with resolved config:\n\n{YAML}\n",
    f"2025-06-12 09:15:31 INFO config:\n{YAML}",
    f"+ {COMMAND}",
    "train_batch_size: 8\nstage: 2\ncutoff_len: 10\n",
    indented(YAML),
]


@for_each("lines", LOG_LINES)
@for_each("before", ["2025-06-12 09:15:30 INFO starting\n", "W0612 09:15:30.118 torch/run.py:793] \n", "[rank0]: hello\n\n"])
def test_the_lines_of_a_log_are_no_config(lines: str, before: str) -> None:
    """What a program prints is read as the log's, or not at all, even where a person added a word at the end."""
    assert found(f"{before}{lines}{TRACE}") == []
    assert found(f"{before}{lines}{TRACE}\n\nThanks for any help, I have no idea.\n") == []


@for_each(
    "block",
    [
        f"```diff\n-{YAML}```\n",
        "```yaml\ncolour: blue\nwheels: 4\n```\n",
        "```json\n[1, 2, 3]\n```\n",
        "```yaml\nstage: sft\ncutoff_len: [4096\n```\n",
        "```\npip install --upgrade torch\n```\n",
        "```\n```\n",
        "```yaml\n" + YAML * 2000 + "```\n",
    ],
)
def test_other_blocks_are_left_alone(block: str) -> None:
    """Neither a config nor a complaint about one."""
    page = f"My page:\n\n{block}\n```\n{TRACE}```\n"
    assert found(page) == []
    assert not [one for one in told(page)["notices"] if one["level"] == "error"]


def test_a_fence_that_is_never_closed_ends_with_the_page() -> None:
    """Cut off by the length limit of a form."""
    assert [name for name, _ in found(f"My config:\n\n```yaml\n{YAML}")] == ["paste.txt#block-1"]


@pytest.mark.parametrize("words", ["out of memory\nmy command:", "显存溢出\n请教大佬，命令见下：", "为什么会爆显存："])
def test_a_short_question_round_a_command(words: str) -> None:
    """Nothing else says that a person wrote it: no fence, no heading."""
    command = "NPROC_PER_NODE=4 swift sft \\\n  --model_type qwen2-vl-7b-instruct \\\n  --batch_size 2 \\\n  --sft_type lora"
    seen = told(f"{words}\n{command}\n\n{TRACE}")
    facts = {fact["name"]: fact["value"] for fact in seen["facts"]}
    assert facts["train.micro_batch_size"] == 2
    assert facts["model.id"] == "Qwen/Qwen2-VL-7B-Instruct"  # the release of that time named the model by its type


def test_windows_line_ends_and_utf_16() -> None:
    """Copied from Windows."""
    page = f"My config:\n\n```yaml\n{YAML}```\n\n```\n{TRACE}```\n".replace("\n", "\r\n")
    for data in (page.encode(), page.encode("utf-16")):
        assert micro_batch(told(data))[::2] == (3, 9)


PIECES = st.sampled_from(
    ["```", "```yaml", "~~~", "> ", "<details>", "    ", YAML, JSON, COMMAND, TRACE, "I see my error:", "{", "}", "- a", "", "x: 1"]
)


@given(st.lists(PIECES | st.text(max_size=40), max_size=12).map("\n".join))
def test_any_page_is_read_without_harm(page: str) -> None:
    """Blocks in any disorder: every config stands in the page where its name says."""
    for one in pasted_page.configs(scan(Source.text(page, "p"))):
        lines = one.data.decode("utf-8", "replace").split("\n")
        first = next(number for number, line in enumerate(lines) if line.strip())
        assert lines[first].strip() in page.split("\n")[first].replace("\r", "")
    told(page)


def test_a_command_below_a_prompt_that_only_sets_a_variable() -> None:
    """A prompt with somebody's name and machine begins the block; the program stands on a line of its own."""
    page = f"I start it like this:\n\n```\n(env) root@box /h/u/# export CUDA_VISIBLE_DEVICES=0,1\n\n{COMMAND}```\n\n{MESSAGE}"
    assert {fact.value for fact in explain(page).facts if fact.name == "train.micro_batch_size"} == {3}


ORCHESTRATOR = "batch_size = 64\nmicro_batch_size = 2\nrollouts_per_example = 8\nseq_len = 4096\n"
TRAINER = '[model]\nname = "Qwen/Qwen3-8B"\n\n[model.ac]\n\n[optim]\nlr = 1e-6\n'


@pytest.mark.parametrize(
    ("second", "used"), [(TRAINER, True), (ORCHESTRATOR.replace("= 2\n", "= 1\n"), False)], ids=["another part", "another try"]
)
def test_a_configuration_of_several_files_is_read_whole(second: str, used: bool) -> None:
    """prime-rl has a file for each of its processes; a second file that says otherwise of one key is another try."""
    report = told(f"Trainer runs out of memory\n\n```toml\n{ORCHESTRATOR}```\n\n```toml\n{second}```\n")
    assert micro_batch(report)[0] == 2
    assert any(fact["name"] == "train.gradient_checkpointing" and fact["value"] == "enabled" for fact in report["facts"]) is used
    assert any(one["code"] == "config_not_used" for one in report["notices"]) is not used
