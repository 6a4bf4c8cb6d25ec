"""Configs as they should not be: YAML's traps, wrong types, duplicates, bombs; each is a fact or one clear sentence with its place."""

from __future__ import annotations

from typing import Any

import pytest
from collected import for_each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pace import within

from diagnose.adapters import config_reader
from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.formats.settings import MAX_READ_BYTES, ConfigSource, Settings
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.translate.config_part import Part
from diagnose.adapters.translate.translation import translate
from diagnose.facts import FactBook, Notice
from diagnose.parse.model.reading import Reading
from diagnose.pipeline import explain
from diagnose.plan.edits import knob_edits
from diagnose.plan.patch import patching

BASE = "stage: sft\nfinetuning_type: lora\n"


def read(data: str | bytes, kind: str | None = None) -> Settings:
    raw = data.encode() if isinstance(data, str) else data
    return config_reader.read([ConfigSource("c.yaml", raw, kind)], Reading(), FactBook())


def value(text: str, knob: str) -> object:
    return FactBook(read(text).facts).value(knob)


def notices(data: str | bytes) -> list[tuple[str, int, int]]:
    return [(one.code.removeprefix("config."), one.witness.line, one.witness.column) for one in read(data).notices if one.witness]


def in_both_languages(notice: Notice) -> bool:
    return bool(notice.message.en) and any("\u4e00" <= sign <= "\u9fff" for sign in notice.message.zh)


# -- what YAML 1.1 makes of it


@for_each(
    "written, knob, found",
    [
        ("cutoff_len: 010", "train.max_seq_len", 8),
        ("cutoff_len: 0x10", "train.max_seq_len", 16),
        ("cutoff_len: 1_024", "train.max_seq_len", 1024),
        ("cutoff_len: 1:30", "train.max_seq_len", 90),
        ("cutoff_len: '2048'", "train.max_seq_len", 2048),
        ("cutoff_len: &n 2048", "train.max_seq_len", 2048),
        ("cutoff_len: !!int 2048", "train.max_seq_len", 2048),
        ("packing: on", "train.packing", True),
        ("packing: Yes", "train.packing", True),
        ("packing: off", "train.packing", False),
        ("? cutoff_len\n: 2048", "train.max_seq_len", 2048),
        ("x: &x {cutoff_len: 2048}\n<<: *x", "train.max_seq_len", 2048),
    ],
)
def test_scalars_are_what_yaml_reads(written: str, knob: str, found: object) -> None:
    assert value(BASE + written + "\n", knob) == found


@pytest.mark.parametrize("written", ["010", "1:30", "0x10"])
def test_a_number_in_an_odd_notation_is_said(written: str) -> None:
    assert ("odd_number", 3, 13) in notices(f"{BASE}cutoff_len: {written}\n")


def test_an_edit_takes_the_odd_number_away_and_nothing_else() -> None:
    text = f"{BASE}cutoff_len: 010  # octal\nlearning_rate: 1e-5\n"
    told = read(text)
    made = knob_edits.edits(told.documents, FactBook(told.facts), {"train.max_seq_len": 512})
    assert made is not None and patching.apply(told.documents[0], made) == text.replace("010", "512")


# -- wrong types, duplicates, odd keys


@for_each(
    "written",
    ["[1, 2]", "{a: 1}", "many", "-3.5", ".nan", "1e400", "2024-01-01", "'4,096'", "9" * 400, "\n  - 1\n  - 2"],
)
def test_a_value_of_the_wrong_type_is_no_number(written: str) -> None:
    """Never a guess, never a traceback; what stands there is said with its place, or leaves the knob unknown."""
    told = read(f"{BASE}cutoff_len: {written}\n")
    found = FactBook(told.facts).fact("train.max_seq_len")
    assert found is None or found.value is None or found.origin == "default"
    for notice in told.notices:
        assert in_both_languages(notice)


def test_a_list_where_a_number_belongs_names_its_place() -> None:
    """And what belongs there, in both languages."""
    assert ("wrong_value", 3, 1) in notices(f"{BASE}per_device_train_batch_size: [1, 2]\n")
    [said] = read(f"{BASE}per_device_train_batch_size: [1, 2]\n").notices
    assert said.message.en.endswith("expected a whole number") and said.message.zh.endswith("应为整数")


def test_a_file_of_ten_megabytes_is_refused_with_its_size() -> None:
    """At once, and with how much would be read."""
    [said] = read(b"key: value\n" * 1_000_000).notices
    assert said.code == "config.too_large" and "11,000,000" in said.message.en and "2,000,000" in said.message.zh


@for_each(
    "text, place",
    [
        (f"{BASE}cutoff_len: 1\ncutoff_len: 2\n", ("duplicate_key", 4, 1)),
        ('{"stage": "sft", "finetuning_type": "lora", "cutoff_len": 1,\n "cutoff_len": 2}', ("duplicate_key", 2, 2)),
        (f"{BASE}? [a, b]\n: 2\n", ("odd_key", 3, 3)),
        (f"{BASE}---\n{BASE}", ("several_documents", 4, 1)),
    ],
)
def test_oddities_are_said_with_their_place(text: str, place: tuple[str, int, int]) -> None:
    told = read(text)
    assert place in [(one.code.removeprefix("config."), one.witness.line, one.witness.column) for one in told.notices if one.witness]
    assert all(in_both_languages(one) for one in told.notices)
    assert FactBook(told.facts).value("train.framework") == "llamafactory"


def test_keys_that_are_no_text_are_passed_over() -> None:
    assert value(f"1: a\ntrue: b\n~: c\n2024-01-01: d\n{BASE}cutoff_len: 7\n", "train.max_seq_len") == 7


# -- bytes


@for_each("encode", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
@for_each("line_end", ["\n", "\r\n"])
def test_encodings_and_line_ends_do_not_matter(encode: str, line_end: str) -> None:
    text = f"# 显存\n{BASE}cutoff_len: 2048\n".replace("\n", line_end)
    told = read(text.encode(encode))
    fact = FactBook(told.facts).fact("train.max_seq_len")
    assert fact is not None and (fact.value, fact.witness.line) == (2048, 4)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f'x: "a\u2028b"\n{BASE}cutoff_len: 2048\n', 5),
        (f'x: "a\x85b"\r{BASE}cutoff_len: 2048\n', 5),
        ('{"x": "a\u2028b",\r"stage": "sft", "finetuning_type": "lora",\n"cutoff_len": 2048}', 2),
        ("# a\rfrom trl import SFTConfig\nx = '\u2028'\f\rargs = SFTConfig(max_length=2048)\n", 4),
        ("# a\ncd x\u2028\x85\r\ntrl sft --model_name_or_path a/b --max_length 2048\n", 3),
    ],
)
def test_lines_are_those_of_the_language(text: str, line: int) -> None:
    """YAML ends lines at characters at which JSON and a shell do not, Python at a lone carriage return."""
    fact = FactBook(read(text).facts).fact("train.max_seq_len")
    assert fact is not None and fact.witness.line == line


# -- unusable


@for_each(
    "text, code, place",
    [
        (f"{BASE}\tcutoff_len: 1\n", "not_yaml", (3, 1)),
        (f"{BASE}cutoff_len: [1\nbf16: true\n", "not_yaml", (4, 5)),
        (f"{BASE}cutoff_len: *nowhere\n", "not_yaml", (3, 13)),
        (f"{BASE}a: 'x\n", "not_yaml", (4, 1)),
        ('{"stage": "sft",\n "x": }', "not_json", (2, 7)),
        ('{"stage": "sft"\n "x": 1}', "not_json", (2, 2)),
        ("from trl import SFTConfig\nargs = SFTConfig(\n", "not_python", (2, 17)),
        ("- a\n- b\n", "not_a_mapping", (1, 1)),
        ("[training]\nseq_len = \n", "not_toml", (2, 11)),
    ],
)
def test_what_cannot_be_read_is_one_sentence_with_its_place(text: str, code: str, place: tuple[int, int]) -> None:
    found = read(text).notices
    assert [one.code for one in found] == [f"config.{code}"]
    assert found[0].witness is not None and (found[0].witness.line, found[0].witness.column) == place
    assert in_both_languages(found[0]) and "\n" not in found[0].message.en


def test_a_tab_is_called_a_tab() -> None:
    assert "tab" in read(f"{BASE}\tcutoff_len: 1\n").notices[0].message.en


@pytest.mark.parametrize("written", ["[" * 50_000, '{"method": ' * 20_000, "[1, 2]", "null", '{"method": {}}', '{"method"'])
def test_an_option_of_json_that_is_no_object_says_nothing(written: str) -> None:
    script = ConfigSource("serve.sh", f"vllm serve Qwen/Qwen2.5-7B-Instruct --speculative-config '{written}'\n".encode())
    found = FactBook(config_reader.read([script], Reading(), FactBook()).facts)
    assert found.value("model.path") == "Qwen/Qwen2.5-7B-Instruct" and found.value("rollout.draft") is None


def test_an_unknown_kind_is_one_line_and_the_log_is_explained() -> None:
    found = read("colour: blue\nwheels: 4\n").notices
    assert [one.code for one in found] == ["config.unknown_kind"]
    assert "no setting could be read; name the framework with --config KIND=FILE" in found[0].message.en
    assert "没有读出任何设置" in found[0].message.zh
    log = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
        "GPU 0 has a total capacity of 23.99 GiB of which 1.00 GiB is free.\n"
    )
    report: Any = explain(log, configs=["colour: blue\nwheels: 4\n"]).to_dict("en")
    assert report["verdict"]["status"] == "oom"
    assert any("its keys tell no framework" in one["message"] for one in report["notices"])


WIDE = 200_000


def bomb(first: bytes, each: bytes) -> bytes:
    """Anchors of which each holds nine of the one before."""
    lines = [b"n0: &n0 " + first + b"\n"]
    for level in range(1, 12):
        inner = b", ".join([b"*n%d" % (level - 1)] * 9)
        lines.append(b"n%d: &n%d " % (level, level) + each.replace(b"@", inner) + b"\n")
    return b"".join(lines)


HOSTILE = {
    "ten megabytes": b"a: " + b"x" * (10 * 2**20),
    "ten megabytes of keys": b"".join(b"k%d: 1\n" % i for i in range(WIDE)),
    "more than is read": b"x" * (MAX_READ_BYTES + 1),
    "deep flow": b"[" * 100_000,
    "deep mapping": b'{"a":' * 50_000,
    "deep blocks": "".join(" " * i + "a:\n" for i in range(1000)).encode(),
    "alias bomb": bomb(b"[x, x, x, x, x, x, x, x, x]", b"[@]"),
    "merge bomb": bomb(b"{x: 1}", b"{<<: [@]}"),
    "holds itself": b"a: &a\n  b: *a\n",
    "long key": b"k" * 100_000 + b": 1\n",
    "quotes": b"'" * 100_000,
    "anchors": b"".join(b"k%d: &a%d 1\n" % (i, i) for i in range(30_000)),
    "tags": b"a: " + b"!" * 100_000,
    "comments": b"#\n" * 900_000,
    "nul": b"stage: sft\0\n",
}  # fmt: skip


@for_each("name", HOSTILE)
def test_hostile_files_are_refused_in_bounded_time(name: str) -> None:
    with within(20):
        told = read(HOSTILE[name])
    assert told.notices and all(in_both_languages(one) for one in told.notices)
    assert all(len(one.message.en) < 1000 for one in told.notices)


# -- anything at all

LINES = st.sampled_from(
    [
        "stage: sft", "finetuning_type: lora", "cutoff_len:", "cutoff_len: 4", "  x: 1", "- a", "- b: 2", "a: &a 1", "b: *a",
        "<<: *a", "? x", ": y", "---", "...", "%YAML 1.1", "\tz: 1", "q: 'x", 'r: "', "s: |", "  text", "t: {a: 1", "}", "u: [1,", "]",
        "# c", "v: !!python/object:x {}", "w: 1:2", "0: 0", "", "~: ~",
    ]
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(LINES, max_size=12),
    st.sampled_from([None, "llamafactory", "deepspeed", "shell", "python"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_no_lines_raise(lines: list[str], kind: str | None, line_end: str) -> None:
    """Read, and edited where a knob was found; the places are places of the text."""
    text = line_end.join(lines)
    told = read(text, kind)
    for document in told.documents:
        for entry in document.entries:
            assert 0 <= entry.start <= entry.end <= len(document.text)
            assert document.text[entry.start : entry.end] == entry.written
    made = knob_edits.edits(told.documents, FactBook(told.facts), {"train.max_seq_len": 64})
    if made:
        patching.diff(told.documents, made)


# -- one key, several knobs

WORDS = [
    (name, key.key, word)
    for name in framework_tables.names()
    for key in framework_tables.table(name).keys
    if key.key
    for word in (key.values or {})
    if not {"*", "["} & set(word)
]


def test_a_word_of_one_line_is_no_slip_in_another() -> None:
    """Every word that a table lists for a key is understood, whichever knob of that key lists it."""
    for name, key, word in WORDS:
        part = Part(
            "c",
            framework_tables.table(name),
            "yaml",
            f"{key}: {word}",
            (Leaf(key, word, word, len(key) + 2, len(key) + 2 + len(word), 1, 1),),
        )
        assert not [one for one in translate(part, {}, None).notices if one.code == "config.wrong_value"], (name, key, word)


@for_each("strategy", ["deepspeed_stage_3_offload", "fsdp", "ddp_find_unused_parameters_true", "auto"])
def test_a_strategy_of_lightning_is_no_mistake(strategy: str) -> None:
    """It turns knobs of ZeRO or of FSDP, and says nothing of the other's."""
    told = read(f'import lightning as L\ntrainer = L.Trainer(devices=8, strategy="{strategy}")\n')
    assert "config.wrong_value" not in [one.code for one in told.notices]


def test_a_word_that_no_line_knows_is_said_once_with_the_line() -> None:
    """One sentence for the key, not one for each of its knobs, with all the words that would do."""
    told = read('import lightning as L\ntrainer = L.Trainer(devices=8, strategy="deepspeed_stage_4")\n')
    [notice] = [one for one in told.notices if one.code == "config.wrong_value"]
    assert notice.witness is not None
    assert (notice.witness.line, notice.witness.text) == (2, 'trainer = L.Trainer(devices=8, strategy="deepspeed_stage_4")')
    assert "deepspeed_stage_3_offload" in notice.message.en and "fsdp_cpu_offload" in notice.message.zh
    assert FactBook(told.facts).value("zero.stage") is None
