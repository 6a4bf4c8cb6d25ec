"""A page made of a case says what the files say: the same failure, and every knob that the page holds."""

from __future__ import annotations

from typing import Any

import pages
import pytest
import yaml
from cases import CORPUS, folders, without_advice
from checkout import ROOT
from collected import for_each
from sweep import SWEEP, sample

from diagnose.facts import FactBook
from diagnose.inputs.pasted_page import blocks
from diagnose.pipeline import explain

#: Cases that are no pages yet, each in one form with one kind of prose; in a sweep all of them in each.
CHOICES = [
    (name, form, prose)
    for at, name in enumerate(sample([*filter(pages.is_no_page, folders())], 100))
    for form_at, form in enumerate(pages.FORMS)
    for prose_at, prose in enumerate(pages.PROSE)
    if SWEEP or (form_at == at % len(pages.FORMS) and prose_at == at // len(pages.FORMS) % len(pages.PROSE))
]


@for_each("name, form, prose", CHOICES)
def test_a_page_says_what_the_files_say(name: str, form: str, prose: str) -> None:
    """The whole page, and the page cut at some line behind the failing message; in a quick run one of them."""
    for cut in (False, True) if SWEEP else (len(name) % 2 == 0,):
        page = pages.page(name, form, prose, 0, cut)
        want, seen = pages.answer(page.log, page.configs), pages.answer(page.text, [])
        assert seen.event == want.event
        assert not {knob: values for knob, values in want.knobs.items() if not values <= seen.knobs.get(knob, set())}


YAML = "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ncutoff_len: 4096\n"


@pytest.mark.parametrize(
    "page, want",
    [
        ("```train.lr=1 \\\ntrain.bs=3\n```\n", (1, "train.lr=1 \\\ntrain.bs=3")),
        ("```bash torchrun --n 3 \\\n --y=3\n```\n", (1, "torchrun --n 3 \\\n --y=3")),
        ('```yaml title="x.yaml"\na: 1\n```\n', (2, "a: 1")),
        ("```sh\nls\nmake```\n\nThat is all.\n", (2, "ls\nmake")),
        ("<pre><code>a: &lt;s&gt;\nb: <b>2</b></code></pre>\n", (1, "a: <s>\nb: 2")),
        (f"yaml\nCopy code\n{YAML}", (3, YAML.rstrip())),
        (f"{YAML}\n### Reproduction\n\n- `version`: 2\n", (1, YAML.rstrip())),
        (f"```yaml\n{YAML}\nand then:\n\n```text\nx\n```\n", (2, YAML.rstrip())),
        ("Config:\n\n" + '{"bf16": {"enabled": true},\n "stage": 3}\n\nAnd so on.\n', (3, '{"bf16": {"enabled": true},\n "stage": 3}')),
        ("## train.py\n\nimport torch\n\nx = f(1)\n\n### Log\n\n  3%| | 1/2\n", (3, "import torch\n\nx = f(1)")),
        ("## train.py\n\nimport torch\n\nx = f(1)\n\n### Versions\n\ntorch==2.1.0\n", (3, "import torch\n\nx = f(1)")),
        ("## train.py\n\nimport torch\nx = 1\n\n### Run\n\nN=1 torchrun x.py\n", (3, "import torch\nx = 1")),
        (
            "N=1 torchrun a.py --b 1\n# then\nexport C=2\nN=2 torchrun d.py\n",
            (1, "N=1 torchrun a.py --b 1\n# then\nexport C=2\nN=2 torchrun d.py"),
        ),
        ("My script:\n\nimport torch\n\nx = f(\n    1,\n)\n\nIt prints this.\n", (3, "import torch\n\nx = f(\n    1,\n)")),
    ],
)
def test_where_a_block_begins_and_ends(page: str, want: tuple[int, str]) -> None:
    """Line and text of the first block."""
    block = next(blocks(page.split("\n")))
    assert (block.line, block.text) == want


def test_what_a_config_says_is_not_read_as_a_line_of_the_log() -> None:
    """Its reader knows which of two values counts; the log has none."""
    script = (CORPUS / "pieces-of-a-cached-batch" / "train.py").read_text()
    log = (CORPUS / "pieces-of-a-cached-batch" / "error.log").read_text()
    diagnosis = explain(f"My script:\n\n```\n{script}```\n\n```\n{log}```\n")
    assert {fact.origin for fact in diagnosis.facts if fact.name == "train.micro_batch_size"} == {"config"}


def test_a_command_is_read_from_a_list_of_strings() -> None:
    page = "Out of memory on an A100, I run:\n\n> \t'python scripts/get.py --repo_id a/b \\\n> \t\t--checkpoint_dir c',\n> \t\n"
    page += "> \t'python finetune/lora.py \\\n> \t\t--checkpoint_dir c/a/b \\\n>   \t\t--precision bf16-true'\n\nWhy is that?\n"
    book = FactBook(explain(page).facts)
    assert (book.word("train.framework"), book.word("train.precision")) == ("litgpt", "pure_bf16")


def test_a_whole_command_goes_before_some_of_its_options() -> None:
    """A page quotes what was tried, then shows the script."""
    page = "We set these already:\n\n    --per_device_train_batch_size 1 \\\n    --bf16 True\n\nand the script is:\n\n"
    page += "torchrun --nproc_per_node=4 train.py \\\n    --model_name_or_path gpt2 \\\n    --gradient_accumulation_steps 7\n\nThanks!\n"
    values = {fact.name: fact.value for fact in explain(page).facts}
    assert values["train.gradient_accumulation"] == 7


def test_a_command_whose_lines_markdown_breaks_is_one() -> None:
    """Two blanks at the end of a line break it: the variables belong to the command, and are no names of a script in Python."""
    page = "# OOM with GRPO\n\nCUDA_VISIBLE_DEVICES=0,1,2  \nNPROC_PER_NODE=2  \nswift rlhf  \n--rlhf_type grpo  \n--train_type lora  \n"
    book = FactBook(explain(f"{page}--per_device_train_batch_size 3  \n\nWhy is that?\n").facts)
    assert [book.value(name) for name in ("train.micro_batch_size", "parallel.world", "code.variable_unset")] == [3, 2, None]


@for_each("last", ["unfrozen_", "val_set_s", "lora_target"])
def test_a_config_that_is_cut_in_a_name_is_read_as_far_as_it_goes(last: str) -> None:
    page = f"# OOM with axolotl\n\n```yaml\nbase_model: org/name-7b\nload_in_4bit: true\nadapter: qlora\nmicro_batch_size: 3\n{last}"
    book = FactBook(explain(page).facts)
    assert (book.value("train.framework"), book.value("train.micro_batch_size")) == ("axolotl", 3)


REPORTED = yaml.load((ROOT / "tests" / "inputs" / "reported_pages.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)


@for_each("case", REPORTED)
def test_a_page_as_people_post_it(case: dict[str, Any]) -> None:
    """Its root event as printed, no failure that is not printed, and the knobs that stand in its configs."""
    with without_advice():
        report: dict[str, Any] = explain(case["page"]).to_dict("en")
    verdict = report["verdict"]
    event = {} if verdict["event"] is None else report["events"][verdict["event"]]
    seen = {**event, "status": verdict["status"], "phase": verdict["phase"]}
    assert {key: value["text"] if isinstance(value := seen[key], dict) else value for key in case["event"]} == case["event"]
    assert case["event"] or verdict["status"] != "oom"
    values: dict[str, list[str]] = {}
    for fact in report["facts"]:
        values.setdefault(fact["name"], []).append(str(fact["value"]))
    assert not {knob: value for knob, value in case["knobs"].items() if str(value) not in values.get(knob, [])}
