"""Configurations that are modules of Python: each value by its path, at the place where it is written."""

from __future__ import annotations

import pytest
from collected import for_each

from diagnose.adapters.documents.open_config import open_document
from diagnose.adapters.formats.config_value import Leaf, Unreadable
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.adapters.python.config_module import ConfigModuleReader


def leaves(text: str) -> dict[str, Leaf]:
    return {leaf.key: leaf for leaf in ConfigModuleReader(text).read()}


def test_a_value_stands_where_its_name_is_given_one() -> None:
    """An edit there changes every place that uses the name; a name that is only passed on is no setting of its own."""
    text = "rows = 4  # 显存\ndataset = dict(max_length=2048)\nloader = dict(batch_size=rows, dataset=dataset)\n"
    read = leaves(text)
    assert set(read) == {"loader", "loader.batch_size", "loader.dataset", "loader.dataset.max_length"}
    assert (read["loader.batch_size"].text, read["loader.batch_size"].line) == ("4", 1)
    assert text[read["loader.dataset"].start : read["loader.dataset"].end] == "dict(max_length=2048)"


def test_a_name_that_is_changed_is_computed_and_stands_where_it_is_used() -> None:
    text = "size = 2\ncounts = 8\ncounts *= size\noptim = dict(counts=counts, limit=int(2048 - (336 / 14)**2))\n"
    read = leaves(text)
    assert (read["optim.counts"].text, read["optim.limit"].text) == ("16", "1472")
    assert text[read["optim.counts"].start : read["optim.counts"].end] == "counts"


def test_what_a_branch_decides_is_unknown() -> None:
    read = leaves("import x\nrows = 4\nif x.large:\n    rows = 8\nloader = dict(batch_size=rows)\n")
    assert (read["loader.batch_size"].shape, read["loader.batch_size"].text) == ("unsure", None)


@for_each(
    "text, key, value",
    [
        ("from a import B\nmodel = dict(type=B)\n", "model.type", "B"),
        ("model = dict(type=a.B.from_pretrained)\n", "model.type", "a.B.from_pretrained"),
        ("model = dict(type='B')\n", "model.type", "B"),
        ("trainer = TrainerConfig(fsdp=FSDPConfig(offload=True))\n", "trainer.fsdp.offload", "True"),
        ("trainer = TrainerConfig(fsdp=FSDPConfig(offload=True))\n", "trainer.fsdp.type", "FSDPConfig"),
        ("loader = L(build)(total=16)\n", "loader.total", "16"),
        ("train = dict(amp=dict(enabled=False))\ntrain.amp.enabled = True\n", "train.amp.enabled", "True"),
        ("with read_base():\n    from .base import *\nloader = dict(batch_size=2)\nloader['batch_size'] = 3\n", "loader.batch_size", "3"),
        ("steps = [dict(type='A'), dict(type='Resize', scale=640)]\n", "steps.1.scale", "640"),
    ],
)
def test_parts_of_a_configuration(text: str, key: str, value: str) -> None:
    assert leaves(text)[key].text == value


@for_each("text", ["rows = 4\ntrain(rows)\n", "rows = 4\nwhile True:\n    pass\n", "trainer = Trainer(a=1)\ntrainer.train()\n"])
def test_a_script_that_works_is_none(text: str) -> None:
    assert leaves(text) == {}


@for_each("made", ["dict(x=a)", "A(x=a)", "dict(x=b, y=b)\nb = dict(x=a, y=a)", "[a, A(b=a)]"])
def test_settings_that_hold_each_other_are_refused(made: str) -> None:
    text = f"a = {made}\nmodel = dict(llm=a)\n"
    with pytest.raises(Unreadable):
        leaves(text)
    assert open_document(ConfigSource("c.py", text.encode())).kind not in ("mmdet", "xtuner")
