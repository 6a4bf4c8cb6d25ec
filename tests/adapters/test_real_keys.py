"""rules/known_keys, the lists of keys that frameworks really have: tables spell no other, a slip is named, and no
real key is called unknown.
"""

from __future__ import annotations

import string

import pytest
import yaml
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep import examples

from diagnose import rule_files
from diagnose.adapters.config_reader import read
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.similar_keys import SHORTEST, Likeness, is_one_slip
from diagnose.facts import FactBook
from diagnose.parse.model.reading import Reading

#: Tables whose keys are no framework's: variables of the environment, and the keywords of PyTorch's own classes; and without any.
_WITHOUT = {"agilerl", "fsdp_qlora", "shell", "swift_env", "tei_env", "tgi_env", "pytorch", "torchrun", "deepspeed_launch"}
NAMES = sorted(set(framework_tables.names()) - _WITHOUT)


def listed(name: str) -> set[str]:
    """The names of rules/known_keys for a framework, with those of what it extends."""
    raw = rule_files.table(f"frameworks/{name}")
    own = {word for block in rule_files.table(f"known_keys/{name}") for word in block["names"].split()} if name not in _WITHOUT else set()
    return own | (listed(raw["extends"]) if "extends" in raw else set())


def notices(name: str, written: dict[str, str]) -> list[str]:
    """What is said of unknown keys in a file of a framework with these keys."""
    text = yaml.safe_dump(written, sort_keys=False)
    told = read([ConfigSource("c.yaml", text.encode(), name)], Reading(), FactBook())
    return [one.message.en for one in told.notices if one.code == "config.unknown_key"]


@for_each("name", NAMES)
def test_every_key_of_a_table_is_a_real_one_or_says_where_it_was_read(name: str) -> None:
    """A table is written by hand: each key that it turns stands in the list drawn from the framework's own source, or carries `source`."""
    real = listed(name)
    made_up = {
        entry["key"]
        for knob, entries in rule_files.table(f"frameworks/{name}").items()
        if "." in knob
        for entry in entries
        if entry.get("key") and entry["key"] not in real and "source" not in entry and not entry.get("code")
    }
    assert made_up == set()


@for_each("name", NAMES)
def test_every_list_says_where_it_was_read_and_names_a_key_once(name: str) -> None:
    blocks = rule_files.table(f"known_keys/{name}")
    assert all(len(block["source"]) > 10 and set(block) == {"source", "names"} for block in blocks)
    words = [word for block in blocks for word in block["names"].split()]
    assert len(words) == len(set(words))
    base = rule_files.table(f"frameworks/{name}").get("extends")
    assert not set(words) & (listed(base) if base else set())


@for_each("name", NAMES)
def test_no_real_key_is_called_unknown(name: str) -> None:
    """All of a framework's keys in one file, and not a word about any of them."""
    real = sorted(framework_tables.table(name).known)
    assert real
    for start in range(0, len(real), 80):
        assert notices(name, dict.fromkeys(real[start : start + 80], "1")) == []


def _slips(key: str, at: int, letter: str) -> str:
    return key[:at] + letter + key[at + 1 :]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_a_real_key_with_one_letter_changed_is_named_with_the_real_one(name: str, data: st.DataObject) -> None:
    known = framework_tables.table(name).known
    long = sorted(key for key in known if len(key.rpartition(".")[2]) >= SHORTEST and "*" not in key)
    key = data.draw(st.sampled_from(long))
    at = data.draw(st.sampled_from([at for at, letter in enumerate(key) if letter.isalpha() and at > key.rfind(".")]))
    slip = _slips(key, at, data.draw(st.sampled_from(string.ascii_lowercase)))
    if slip in known or slip == key:
        return
    said = notices(name, {slip: "1"})
    assert len(said) == 1, (key, slip, said)
    named = said[0].rpartition(" ")[2]  # of a block that takes no others the name inside it
    assert any(near in (named, f"{slip.rpartition('.')[0]}.{named}") for near in known if is_one_slip(near, slip)), (key, slip, said)


@given(st.text("abc_1", min_size=1, max_size=8), st.integers(0, 8), st.sampled_from("xyz"))
def test_a_slip_is_one_letter(key: str, at: int, letter: str) -> None:
    at = min(at, len(key))
    assert is_one_slip(key, key[:at] + letter + key[at:])
    assert not is_one_slip(key, key)
    assert not is_one_slip(key, f"{key}xy")


@for_each(
    "written, meant",
    [
        ("lora_rnak", "lora_rank"),
        ("loraRank", "lora_rank"),
        ("lora_ran", "lora_rank"),
        ("lora_rankk", "lora_rank"),
        ("adam_beta3", ""),
        ("seeds", ""),
    ],
)
def test_what_is_near(written: str, meant: str) -> None:
    """Letters exchanged, missing, too many, or parted otherwise; another number is another key, and so is a short word."""
    assert Likeness(["lora_rank", "adam_beta2", "seed"]).unless_short(written) == meant
