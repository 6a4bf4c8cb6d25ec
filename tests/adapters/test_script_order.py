"""What a script does before its trainer can shard: of which model, in which order, and only where that can be told."""

from __future__ import annotations

from collected import for_each

from diagnose.adapters.python.python_file import Reader
from diagnose.adapters.python.script_values import Script

CLASSES = frozenset({"TrainingArguments", "SFTConfig"})
LOAD = "AutoModelForCausalLM.from_pretrained"


def read(text: str) -> Script:
    return Reader("from transformers import *\n" + text).read(CLASSES)


@for_each(
    "text, moved, by, after",
    [
        (f"model = {LOAD}('a/b')\nmodel = model.to('cuda')\nargs = TrainingArguments('o')\nTrainer(model, args)\n", True, "to", True),
        (f"args = TrainingArguments('o')\nmodel = {LOAD}('a/b')\nmodel.cuda()\nTrainer(model=model, args=args)\n", True, "cuda", False),
        (f"args = TrainingArguments('o')\nmodel = {LOAD}('a/b', device_map={{'': 0}})\nTrainer(model, args)\n", True, "device_map", False),
        (f"args = TrainingArguments('o')\nmodel = {LOAD}('a/b', device_map='auto')\nTrainer(model, args)\n", False, "", False),
        (f"args = TrainingArguments('o')\nmodel = {LOAD}('a/b', device_map='cpu')\nTrainer(model, args)\n", False, "", False),
        (
            f"args = TrainingArguments('o')\nmodel = {LOAD}('a/b')\nbatch.to('cuda')\nTrainer(model, args)\nmodel.to('cuda')\n",
            False,
            "",
            False,
        ),
        (f"model = {LOAD}('a/b')\nmodel.to(device)\nmodel = accelerator.prepare(model)\n", True, "to", None),
    ],
)
def test_what_stands_in_one_place_runs_in_the_order_it_is_written(text: str, moved: bool, by: str, after: bool | None) -> None:
    script = read(text)
    assert (script.cuda_before_shard, script.cuda_by, script.args_after_model) == (moved, by, after)


def test_a_function_runs_where_it_is_called_not_where_it_is_written() -> None:
    """Loaders stand at the top of most scripts, and the arguments exist long before they are called."""
    load = f"def get_model(name):\n    model = {LOAD}(name)\n    return model.to('cuda')\n"
    main = "def main():\n    args = TrainingArguments('o')\n    model = get_model('a/b')\n    Trainer(model=model, args=args)\nmain()\n"
    script = read(load + main)
    assert (script.cuda_before_shard, script.args_after_model) == (True, False)


def test_a_function_called_twice_says_nothing_of_the_order() -> None:
    load = f"def get_model(name):\n    return {LOAD}(name)\n"
    main = "def main():\n    first = get_model('a/b')\n    args = TrainingArguments('o')\n"
    main += "    model = get_model('c/d')\n    Trainer(model, args)\n"
    assert read(load + main).args_after_model is None


def test_the_model_is_the_one_that_the_trainer_is_given() -> None:
    """A teacher, a reward model or a judge on the card is none of the trainer's business."""
    text = f"teacher = {LOAD}('big/teacher', dtype='float32').to('cuda')\nargs = TrainingArguments('o')\n"
    text += f"base = {LOAD}('small/student')\nmodel = get_peft_model(base, LoraConfig(r=8))\nTrainer(model=model, args=args)\n"
    script = read(text)
    leaves = {leaf.key: leaf.text for leaf in script.leaves}
    assert leaves["from_pretrained.model"] == "small/student"
    assert "from_pretrained.dtype" not in leaves
    assert (script.cuda_before_shard, script.args_after_model) == (False, False)


def test_a_name_belongs_to_its_function() -> None:
    text = f"def train():\n    args = TrainingArguments('o')\n    model = {LOAD}('a/b')\n    Trainer(model, args)\n"
    text += f"def judge(path):\n    model = {LOAD}(path).cuda()\n    return model\ntrain()\n"
    script = read(text)
    assert (script.cuda_before_shard, script.args_after_model) == (False, False)


def test_functions_that_call_each_other_end_somewhere() -> None:
    text = f"def a():\n    b()\n    {LOAD}('a/b')\ndef b():\n    a()\n    TrainingArguments('o')\n"
    assert read(text).args_after_model in (None, True, False)
