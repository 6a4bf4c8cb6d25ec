"""TOML: every value is found where it stands, whatever surrounds it; edits move nothing else and still read as TOML."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from collected import for_each
from hypothesis import example, given, settings
from hypothesis import strategies as st

from diagnose import check
from diagnose.adapters import config_reader
from diagnose.adapters.documents.open_config import open_document
from diagnose.adapters.formats.config_value import Leaf, Unreadable
from diagnose.adapters.formats.settings import ConfigSource, Document, Entry
from diagnose.adapters.formats.toml_file import Reader
from diagnose.facts import FactBook, Value
from diagnose.parse.model.reading import Reading
from diagnose.phrases import Text
from diagnose.plan.edits import knob_edits
from diagnose.plan.patch import patching
from diagnose.plan.patch.patch_places import Splice
from diagnose.plan.remedies.remedy import Edit

CONFIG = """# a preset
[job]
dump_folder = "./outputs"   # kept

[model]
name = "llama3"
flavor = '8B'

[training]
local_batch_size = 2  # per card
seq_len = 8192
dataset = "c4"

[parallelism]
data_parallel_shard_degree = -1

[activation_checkpoint]
mode = "selective"
"""


def leaves(text: str) -> dict[str, Leaf]:
    return {leaf.key: leaf for leaf in Reader(text).leaves()}


def document(text: str) -> Document:
    return config_reader.read([ConfigSource("c.toml", text.encode(), "torchtitan")], Reading(), FactBook()).documents[0]


def patched(text: str, changes: dict[str, Value]) -> str:
    told = config_reader.read([ConfigSource("c.toml", text.encode())], Reading(), FactBook())
    edits = knob_edits.edits(told.documents, FactBook(told.facts), changes)
    assert edits
    return patching.apply(told.documents[0], edits)


def written(text: str, *edits: tuple[str, str | None]) -> str:
    """The text with keys set (or taken out) whatever the framework says of them."""
    made = document(text)
    held = {entry.key: entry for entry in made.entries}
    return patching.apply(made, [Edit("c.toml", key, held[key].written if key in held else None, to) for key, to in edits])


# -- reading

names = st.one_of(st.from_regex(r"[A-Za-z0-9_-]{1,8}", fullmatch=True), st.text("aé .#\"'=[", min_size=1, max_size=5))
scalars = st.one_of(
    st.integers(-(2**60), 2**60),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=12),
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=6)


def spelt(value: Any, draw: Any) -> str:
    """A value as TOML, in one of the ways in which TOML writes it."""
    gap: str = draw(st.sampled_from(["", " "]))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        plain = json.dumps(value).replace("\x7f", "\\u007f")
        pairs = json.loads(plain) != value or "\\ud" in plain
        if pairs:
            plain = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        printable = value.isprintable() and "'" not in value
        ways = [plain, f"'{value}'", f"'''{value}'''", f'"""{plain[1:-1]}"""'] if printable else [plain, f'"""\n{plain[1:-1]}"""']
        return str(draw(st.sampled_from(ways)))
    if isinstance(value, list):
        line: str = draw(st.sampled_from(["", "\n  ", "  # why\n"]))
        return "[" + line + f",{gap}{line}".join(spelt(item, draw) for item in value) + (line and f"{line}\n") + "]"
    if isinstance(value, dict):
        return "{" + gap + f",{gap}".join(f"{named(name)}{gap}={gap}{spelt(inner, draw)}" for name, inner in value.items()) + gap + "}"
    return repr(value)


def named(name: str) -> str:
    bare = name and all(sign.isascii() and (sign.isalnum() or sign in "_-") for sign in name)
    return name if bare else json.dumps(name, ensure_ascii=False)


@st.composite
def documents(draw: Any) -> tuple[str, dict[str, Any]]:
    """A document and what it means: keys of the root, then tables."""
    root = draw(st.dictionaries(names, values, max_size=3))
    tables = draw(st.dictionaries(names.filter(lambda name: name not in root), st.dictionaries(names, values, max_size=3), max_size=3))
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    lines = []
    for name, inner in [("", root), *tables.items()]:
        lines += [f"[{named(name)}]" + draw(st.sampled_from(["", " # x = 1"]))] if name else []
        for key, value in inner.items():
            lines += draw(st.lists(st.sampled_from(["", "# note = 2", "   "]), max_size=2))
            lines.append(
                f"{named(key)}{draw(st.sampled_from([' = ', '=', '  =  ']))}{spelt(value, draw)}{draw(st.sampled_from(['', '  # c']))}"
            )
    text = newline.join(line.replace("\n", newline) for line in lines)
    return text, {**root, **tables}


def reached(data: Any, leaf: Leaf) -> Any:
    """What the standard library finds under the leaf's key; names may hold dots, so every way to cut it is tried."""

    def walk(value: Any, rest: str) -> list[Any]:
        found = [value] if not rest else []
        if isinstance(value, dict):
            for name, inner in value.items():
                if rest == name or rest.startswith(f"{name}."):
                    found += walk(inner, rest[len(name) + 1 :]) if rest != name else [inner]
        if isinstance(value, list):
            head, _, tail = rest.partition(".")
            if head.isdecimal() and int(head) < len(value):
                found += walk(value[int(head)], tail) if tail else [value[int(head)]]
        return found

    return walk(data, leaf.key)


@given(documents())
def test_the_span_of_a_leaf_is_its_value(made: tuple[str, dict[str, Any]]) -> None:
    """An edit replaces exactly this span: read alone it must mean what the whole file means under that key."""
    text, _ = made
    data = tomllib.loads(text)
    seen = Reader(text).leaves()
    for leaf in seen:
        assert text[leaf.start : leaf.end] == leaf.written
        if leaf.start == leaf.end:  # a header
            continue
        alone = tomllib.loads(f"v = {leaf.written}")["v"]
        assert any(repr(alone) == repr(other) for other in reached(data, leaf)), leaf
        line, column = text[: leaf.start].count("\n") + 1, leaf.start - text.rfind("\n", 0, leaf.start)
        assert (leaf.line, leaf.column) <= (line, column)

    def count(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else [item for item in value if isinstance(item, (dict, list))]
        return sum(1 + (count(item) if isinstance(item, (dict, list)) else 0) for item in inner)

    assert len(seen) == count(data)


@settings(max_examples=120, deadline=None)
@given(st.one_of(st.text(max_size=80), st.text("[]{}=.\"'#\n \\x1-a,", max_size=60)))
@example("a = 0x" + "f" * 5000)
@example("a = " + "9" * 5000)
@example("a = " + "[" * 2000)
@example("a = " + "{b=" * 200 + "1" + "}" * 200)
@example(".".join("a" * 100_000) + " = 1")
@example("[" + "a." * 50_000 + "b]")
@example('a = """' + "x" * 500_000 + '"""')
@example("a = '''" + "'" * 3 + "'")
@example("[[a]]\n[a.b]\n[[a.b.c]]\n[[a]]\nx = 1")
@example('"\\u0061.b" = 1\n[""]\n"" = 2')
def test_arbitrary_text_is_read_or_refused(text: str) -> None:
    """A stranger's file never ends in a traceback, and what is refused is refused in a sentence."""
    said: Text | None = None
    try:
        seen = Reader(text).leaves()
    except Unreadable as refused:
        said = refused.message
    else:
        assert all(text[leaf.start : leaf.end] == leaf.written for leaf in seen)
    assert said is None or (said.en and said.zh)


def test_every_construct_has_its_place() -> None:
    text = 'x.y = 1\n[a]\nb = {c = "}", d = [{e = 1}, {e = 2}]}\nm = """\nq"""\n[[p]]\nn = 1\n[p.q]\nr = true\n[[p]]\nn = 2\n'
    found = leaves(text)
    assert {key: leaf.text for key, leaf in found.items() if leaf.text is not None} == {
        "x.y": "1",
        "a.b.c": "}",
        "a.b.d.0.e": "1",
        "a.b.d.1.e": "2",
        "a.m": "q",
        "p.0.n": "1",
        "p.0.q.r": "true",
        "p.1.n": "2",
    }
    assert (found["a.b.d.1.e"].line, text[found["a.b.d.1.e"].start]) == (3, "2")


def test_an_array_keeps_its_items() -> None:
    assert leaves('a = ["x", # one\n  "y,z",\n]')["a"].items == ("x", "y,z")


# -- what is TOML


@for_each(
    "text, form, kind",
    [
        (CONFIG, "toml", "torchtitan"),
        (CONFIG.replace("\n", "\r\n"), "toml", "torchtitan"),
        ("[training]\nseq_len = 4096\n", "toml", "torchtitan"),
        ("training.seq_len = 4096\n", "toml", "torchtitan"),
        ("# only\n[activation_checkpoint]\nmode='full'", "toml", "torchtitan"),
        ("[tool.ruff]\nline-length = 120\n", "toml", "unknown"),
        ("base_model: a/b\ndatasets: []\n", "yaml", "axolotl"),
        ("micro_batch_size: 2\nsequence_len: 8\nnote:\n  [a]\n", "yaml", "axolotl"),
        ("lora_r = 8\nargs = TrainingArguments(output_dir='o')\n", "python", "transformers"),
        ("[[ -f x ]] && torchrun train.py --bf16\n", "shell", "shell"),
    ],
)
def test_the_form_is_told_from_the_text(text: str, form: str, kind: str) -> None:
    found = open_document(ConfigSource("c", text.encode()))
    assert (found.form, found.kind) == (form, kind)


@for_each(
    "text, line",
    [("[training]\nseq_len = = 4\n", 2), ('[a]\nx = "open\n', 2), ("[a]\nx = 1\nx = 2\n", 3), ("[a]\nx = 1\n[a]\ny = 2\n", 3)],
)
def test_broken_toml_is_refused_with_its_place(text: str, line: int) -> None:
    found = open_document(ConfigSource("c.toml", text.encode()))
    assert [notice.code for notice in found.notices] == ["config.not_toml"]
    assert found.notices[0].witness is not None and found.notices[0].witness.line == line


@pytest.mark.parametrize("text", ["[metadata]\nname = some thing\nversion: 2\n", "[section]\nkey: value\nother = 1,2\n"])
def test_ini_is_no_framework(text: str) -> None:
    """Sections alone make no TOML: setup.cfg and its like are refused or unknown, never a trainer's configuration."""
    assert open_document(ConfigSource("setup.cfg", text.encode())).kind == "unknown"


# -- edits


def test_a_value_is_changed_where_it_stands() -> None:
    assert patched(CONFIG, {"train.micro_batch_size": 1}) == CONFIG.replace("local_batch_size = 2", "local_batch_size = 1")
    assert patched(CONFIG, {"train.gradient_checkpointing": "enabled"}) == CONFIG.replace('"selective"', '"full"')


def test_quotes_stay_as_they_are() -> None:
    text = CONFIG.replace('"selective"', "'selective'")
    assert patched(text, {"train.gradient_checkpointing": "enabled"}) == text.replace("'selective'", "'full'")


def test_a_key_goes_beside_its_kin() -> None:
    new = patched(CONFIG, {"fsdp.offload": True})
    assert "seq_len = 8192\nenable_cpu_offload = true\n" in new or 'dataset = "c4"\nenable_cpu_offload = true\n' in new
    assert new.replace("enable_cpu_offload = true\n", "") == CONFIG


def test_a_table_that_is_missing_goes_to_the_end() -> None:
    assert patched(CONFIG, {"train.compile": True}) == CONFIG + "\n[compile]\nenable = true\n"
    assert patched(CONFIG.rstrip(), {"train.compile": True}) == CONFIG.rstrip() + "\n\n[compile]\nenable = true\n"


def test_an_empty_table_is_filled() -> None:
    text = "[training]\nseq_len = 8\n[compile] # later\n[model]\nname = 'x'\n"
    assert patched(text, {"train.compile": True}) == text.replace("# later\n", "# later\nenable = true\n")


def test_dotted_keys_stay_dotted() -> None:
    """Where a table is made of dotted names no header may open it again."""
    text = "training.seq_len = 8  # c\ntraining.steps = 4\n"
    new = patched(text, {"train.micro_batch_size": 1})
    assert tomllib.loads(new)["training"] == {"seq_len": 8, "steps": 4, "local_batch_size": 1}
    assert new.replace("training.local_batch_size = 1\n", "") == text


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("training = {seq_len = 8}\n", "training = {seq_len = 8, local_batch_size = 1}\n"),
        ("training = { }\ncompile = {}\nmodel = {name = 'a', flavor = 'b'}\n", None),
    ],
)
def test_braces_are_added_to(text: str, new: str | None) -> None:
    made = patched(text, {"train.micro_batch_size": 1})
    assert tomllib.loads(made)["training"]["local_batch_size"] == 1
    assert new is None or made == new


def test_crlf_stays_crlf() -> None:
    text = CONFIG.replace("\n", "\r\n")
    wishes: list[dict[str, Value]] = [{"fsdp.offload": True}, {"train.compile": True}, {"train.max_seq_len": 7}]
    for changes in wishes:
        new = patched(text, changes)
        assert new.count("\r\n") == new.count("\n")


def test_a_key_is_taken_out_with_its_line() -> None:
    text = '[training]\na = [1,\n  2] # c\nseq_len = 8\nlast = "x"\n'
    assert written(text, ("training.a", None)) == '[training]\nseq_len = 8\nlast = "x"\n'
    assert written("training = {seq_len = 8, steps = 2}", ("training.steps", None)) == "training = {seq_len = 8}"
    assert written("training = {seq_len = 8, steps = 2}", ("training.seq_len", None)) == "training = {steps = 2}"


def test_a_key_is_renamed_in_place_or_moved() -> None:
    text = "[training]\nbatch_size = 8 # mine\nseq_len = 4\ncompile = true\n"
    made = document(text)
    stays = patching.apply(made, [Edit("c.toml", "training.batch_size", "8", None, renamed="training.local_batch_size")])
    assert stays == text.replace("batch_size", "local_batch_size")
    moves = patching.apply(made, [Edit("c.toml", "training.compile", "true", None, renamed="compile.enable")])
    assert tomllib.loads(moves) == {"training": {"batch_size": 8, "seq_len": 4}, "compile": {"enable": True}}


@given(documents(), st.integers(0, 30), scalars)
def test_an_edit_changes_its_value_and_nothing_else(made: tuple[str, dict[str, Any]], which: int, value: Any) -> None:
    """For any file and any key: the new value is read back, every other value is what it was, every other byte too."""
    text, _ = made
    entries = [leaf for leaf in Reader(text).leaves() if leaf.text is not None]
    if not entries:
        return
    leaf = entries[which % len(entries)]
    new = repr(value) if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
    new = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") if isinstance(value, str) else new
    changed = patching.apply_splices(text, [Splice(leaf.start, leaf.end, new)])
    assert changed[: leaf.start] == text[: leaf.start] and changed[len(changed) - len(text) + leaf.end :] == text[leaf.end :]
    before, after = leaves(text), leaves(changed)
    assert list(before) == list(after)
    assert {key for key in before if before[key].text != after[key].text} <= {leaf.key}
    assert repr(tomllib.loads(f"v = {after[leaf.key].written}")["v"]) == repr(value)


@given(documents(), st.sampled_from(["training.seq_len", "compile.enable", "quantize.linear.float8.emulate", "title"]))
def test_a_new_key_is_read_back(made: tuple[str, dict[str, Any]], key: str) -> None:
    """Wherever it goes, the file stays TOML and keeps all that it said."""
    text, _ = made
    data = tomllib.loads(text)
    if key.partition(".")[0] in data:
        return
    entries = tuple(Reader(text).leaves())
    held = tuple(Entry(leaf.key, leaf.written, leaf.start, leaf.end, leaf.line, leaf.column) for leaf in entries)
    doc = Document("c.toml", "torchtitan", "toml", text, held)
    new = patching.apply(doc, [Edit("c.toml", key, None, "7")])
    told: Any = tomllib.loads(new)
    rest = dict(told)
    for name in key.split("."):
        told = told[name]
    assert told == 7
    rest.pop(key.partition(".")[0])
    assert repr(rest) == repr(data)


def test_the_reader_is_shown_the_line() -> None:
    report: Any = check([CONFIG.encode()]).to_dict("en")
    fact = next(fact for fact in report["facts"] if fact["name"] == "train.max_seq_len")
    assert (fact["value"], fact["witness"]["line"], fact["witness"]["key"]) == (8192, 11, "training.seq_len")
