"""Words and short phrases that all formats share: sizes, places, prices, edits, names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import PurePath

from diagnose.facts import Notice, Value, Witness, declared
from diagnose.phrases import Lang, Text, phrase, same
from diagnose.plan.remedies.remedy import Unsettled
from diagnose.units import Size, Version, show, size_text

#: A name of an input that is longer is shown by its last part.
LONGEST_NAME = 32

#: Wider than this share of its value, a size is shown as a range.
VAGUE = 0.1


def word(key: str, lang: Lang, /, **values: object) -> str:
    """A phrase of rules/phrases/render.yaml."""
    return phrase(f"render.{key}").fill(**values).to(lang) if values else _plain(key, lang)


@cache
def _plain(key: str, lang: Lang) -> str:
    """A phrase without placeholders, cached: reports on thousands of jobs repeat few of them."""
    return phrase(f"render.{key}").fill().to(lang)


def name_of(kind: str, name: str, lang: Lang) -> str:
    """The display name of a vocabulary word (`remedy`, `role`); the word itself if a user's rule brings it."""
    try:
        return word(f"{kind}_{name}", lang)
    except KeyError:
        return name


def moment(name: str | None, lang: Lang) -> str:
    try:
        return phrase(f"moment.{name}").to(lang)
    except KeyError:
        return name or ""


def phase(name: str, lang: Lang) -> str:
    try:
        return phrase(f"phase.{name}").to(lang)
    except KeyError:
        return name


def amount(size: Size, lang: Lang = "en") -> str:
    """A size for people: as printed if it was, as a range if it is uncertain."""
    if size.text and not (size.text.endswith(" bytes") and size.bytes >= 2**20):
        return size_text(size)
    if size.high - size.low <= VAGUE * abs(size.bytes):
        return show(size.bytes)
    if size.low <= 0 < size.high:
        return word("at_most", lang, size=show(size.high))
    low, high = show(size.low), show(size.high)
    if low.partition(" ")[2] == high.partition(" ")[2]:
        low = low.partition(" ")[0]
    return word("range", lang, low=low, high=high)


def where_to_read(address: str, rule: str) -> str:
    """Where a terminal's reader finds more on a rule: its address, or the command that shows a page of the manual wherever it is
    installed; empty for a rule of the user's."""
    return f"oomdoctor rules show {rule}" if address and "://" not in address else address


def figure(size: Size) -> str:
    """A size as one figure for a column, always in the same unit."""
    return gib(size.bytes)


def width(size: Size, lang: Lang) -> str:
    """The range of an uncertain size in brackets; empty for a certain one."""
    if size.high - size.low <= VAGUE * abs(size.bytes):
        return ""
    return bracketed(amount(Size(size.low, size.high, size.bytes), lang), lang)


def gib(count: int) -> str:
    """Bytes in GiB, or in a smaller unit if that would print as 0.00."""
    return f"{count / 2**30:.2f} GiB" if abs(count) >= 2**30 // 100 or not count else show(count)


def place(witness: Witness) -> str:
    """A witness as error.log:84 or train.yaml; empty if it is in no file."""
    if not witness.line and not witness.key:
        return ""
    return f"{short_name(witness.source)}:{witness.line}" if witness.line else short_name(witness.source)


def short_name(name: str) -> str:
    """An input's name, or as many of its last path components as fit LONGEST_NAME; of a block of a page the page, whose lines count."""
    name = name.partition("#block-")[0]
    if len(name) <= LONGEST_NAME:
        return name
    *folders, last = PurePath(name).parts or (name,)
    while folders and len(folders[-1]) + 1 + len(last) <= LONGEST_NAME:
        last = f"{folders.pop()}/{last}"
    return last


def places(evidence: tuple[Witness, ...], limit: int = 3) -> str:
    """The places of witnesses, without repetition."""
    distinct = list(dict.fromkeys(filter(None, map(place, evidence))))
    return ", ".join(distinct[:limit]) + (", …" if len(distinct) > limit else "")


def value_text(value: Value, lang: Lang) -> str:
    """A fact's value for people."""
    if value is None:
        return word("unknown", lang)
    if isinstance(value, bool):
        return word("enabled" if value else "disabled", lang)
    if isinstance(value, Size):
        return amount(value, lang)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 100_000 else str(value)
    if isinstance(value, Text):
        return value.to(lang)
    if isinstance(value, (str, Version)):
        return str(value)
    return value.id


def meaning(name: str, lang: Lang) -> str:
    """What a fact or knob means, in a few words."""
    entry = declared(name)
    return name if entry is None else entry.zh if lang == "zh" else entry.en


def comma(lang: Lang) -> str:
    return "，" if lang == "zh" else ", "


def semicolon(lang: Lang) -> str:
    return "；" if lang == "zh" else "; "


def sentence_break(lang: Lang) -> str:
    """The end of a sentence that another follows."""
    return "。" if lang == "zh" else ". "


def colon(lang: Lang) -> str:
    return "：" if lang == "zh" else ": "


def bracketed(text: str, lang: Lang) -> str:
    return f"（{text}）" if lang == "zh" else f" ({text})"


def sentence(text: str, lang: Lang) -> str:
    """A sentence with capital and full stop; a leading key stays as it is."""
    text = text.strip()
    first = text.split(" ", 1)[0].removesuffix(",")
    if lang == "en" and first.isalpha() and first.isascii() and first.islower():
        text = text[0].upper() + text[1:]
    return text if not text or text[-1] in ".!?。！？:：" else text + ("。" if lang == "zh" else ".")


#: Where a sentence ends and another begins.
_NEXT = {"en": re.compile(r"(?<=[.!?])\s+(?=[A-Z\"“])"), "zh": re.compile(r"(?<=[。！？])")}


def first_sentence(text: str, lang: Lang) -> str:
    """The first sentence of a text."""
    return _NEXT[lang].split(text, maxsplit=1)[0]


#: Files of settings, and files of commands.
_FILES, _COMMANDS = (".yaml", ".yml", ".json", ".toml"), (".sh", ".bash", ".slurm", ".sbatch", ".bat", ".cmd", ".ps1")

#: How variables of the environment are spelt.
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]+")


def setting(key: str, value: str, target: str = "") -> str:
    """A key with its value as `target` writes it: `key: value`, `--key value`, `--key`, `Call(key=value)`; `key=value` in a command."""
    if key.startswith("-"):
        return f"{key} {value}".rstrip()
    if target.endswith((".py", ".ipynb")) and not _VARIABLE.fullmatch(key):
        return _argument(key, value)
    if value and (target.endswith(_COMMANDS) or (_VARIABLE.fullmatch(key) and not target.endswith(_FILES))):
        return f"{key}={value}"
    return f"{key}: {value}"


def _argument(key: str, value: str) -> str:
    """An argument of a script: `key=value`, `block={"key": value}`, `from_pretrained(key=value)`."""
    call, dot, argument = key.partition(".")
    if dot and (call == "from_pretrained" or call[:1].isupper()):
        return f"{call}({_argument(argument, value)})"
    first, *inner = key.split(".")
    for name in reversed(inner):
        value = f'{{"{name}": {value}}}'
    return f"{first}={value}"


def question(why: str, how: str, lang: Lang) -> str:
    """A question, why it matters, and the way to find the answer, each a sentence."""
    parts = (sentence(why, lang), sentence(how, lang))
    return ("" if lang == "zh" else " ").join(filter(None, parts))


def lower_first(text: str) -> str:
    """The text as it goes on after a colon: its first word in lower case, unless that is a name."""
    return text[:1].lower() + text[1:] if text.partition(" ")[0][1:].islower() else text


def undecided_causes(rules: Sequence[Unsettled], lang: Lang) -> str:
    """The titles of undecided causes, and the fact that they lack."""
    titles = semicolon(lang).join(rule.title.to(lang) for rule in rules)
    return sentence(word("lacks", lang, titles=titles, fact=meaning(rules[0].fact, lang)), lang)


def notice(note: Notice, lang: Lang) -> str:
    """A notice preceded by its place, unless its message names it."""
    text = note.message.to(lang)
    if note.witness is None or not (where := place(note.witness)):
        return text
    if note.witness.line and note.witness.column and note.code.startswith("config."):
        where += f":{note.witness.column}"  # of a config's fault an editor is told line and column
    for name in dict.fromkeys((note.witness.source, short_name(note.witness.source))):
        text = text.removeprefix(f"{name}{colon(lang)}")
    text = text.removesuffix(phrase("adapters.at", what=same(""), line=note.witness.line, column=note.witness.column).to(lang))
    return f"{where}{colon(lang)}{text}" if where not in text else text


def notice_with_level(note: Notice, lang: Lang) -> str:
    """A notice preceded by its level."""
    return f"{level(note, lang)}{colon(lang)}{notice(note, lang)}"


def level(note: Notice, lang: Lang) -> str:
    return word(f"level_{note.level}", lang)
