"""Models of rules/models, found by id or by a path that ends in one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

from diagnose import rule_files
from diagnose.catalogue.entries import shape_of
from diagnose.catalogue.parameter_count import Model

#: Names of copies that somebody has turned into 16 bits.
UNPACKED = re.compile(r"[-_](?:bf|fp)16\b", re.IGNORECASE)

#: Suffixes of model names that do not change the dimensions: storage formats, then kinds of tuning. Stripped one at a time.
#: (Patterns are texts, compiled on first use.)
_STORAGE_SUFFIX = (
    r"-(?:unsloth|bnb|bnb-?[48]bit|[48]bit|gptq|int[48]|gptq-int[48]|awq|gguf|fp8|fp8-dynamic|nvfp4|mxfp4|quantized|bf16|hf|ms)$"
    r"|[-.]w\d{1,2}a\d{1,2}$"
    r"|(?:[-.](?:i?q\d(?:_[a-z0-9]{1,4}){0,3}|f16|bf16|f32))?\.gguf$"
)
#: A size in a model's name, behind a number of experts (`8x7B`); not that of the experts that a token sees (`-A10B`).
_SIZE = r"(?<![0-9.])(?<!-[AEae])(?:(\d{1,3})x)?(\d{1,4}(?:\.\d{1,2})?)([bBmM])(?![A-Za-z0-9])"
#: How many folders of a path, from its end, may name the model.
_NEAREST_FOLDERS = 3
_TUNING_SUFFIX = r"-(?:instruct|chat|it|base)$"
#: A size without its b (`Qwen2.5-VL-32-Instruct`). Smaller numbers there are releases (`gemma-2-it`).
_FORGOTTEN_B = r"(?i)(?<=-)([5-9]|\d{2,3})(?=-(?:instruct|chat|it|base)\b)"
#: What people leave out of a name: behind the size a release, a date or the active part; sizes of a model with a name of its own.
_RELEASE_SUFFIX = r"(?<=\db)-v\d(?:\.\d)?$|(?<=\db)-a\d{1,3}b$|(?<=\db)-2\d(?:0[1-9]|1[0-2])$|-\d{1,3}b-\d{1,3}e$"
#: Suffixes that users append to the names of models they trained, with an optional number.
_USER_SUFFIX = (
    r"-(?:(?:full-?|q?lora-?)?(?:sft|dpo|kto|orpo|ppo|grpo|rm|pt|ft)|q?lora|full|merged?|(?:fine-?)?tuned?|finetune|local|new|final)"
    r"(?:-?v?\d+(?:-\d+)?)?$|(?<=b)-(?:20\d{2}|)[01]\d[0-3]\d$"  # of a run, of a day
)
#: Folder names that do not name a model: the parent folder does.
_GENERIC_FOLDER = (
    r"checkpoint-\d+(?:-merged)?|v\d+-\d{8}-\d{6}|global_step_?\d+|epoch[-_]?\d+|[0-9a-f]{40}"
    r"|snapshots|main|master|hf|huggingface|original|actor|full|q?lora|sft|dpo|merged|final"
)

#: The most models that one unknown name is taken for.
MOST_KIN = 4


@lru_cache(maxsize=1024)
def model(path: str) -> Model | None:
    """The model with this id, or with a path that ends in it; None if unknown.

    Organisation, case, and suffixes of quantisation or tuning (-AWQ, -Instruct) are ignored; the size never is.
    """
    index = _index()
    spellings = list(_spellings(path))
    number = next((index["names"][name] for name in spellings if name in index["names"]), None)
    if number is None:
        number = next((index["plain"][name] for text in spellings for name in _informal_spellings(text) if name in index["plain"]), None)
    if number is None:
        number = next((index["short"][name] for text in spellings for name in _informal_spellings(text) if name in index["short"]), None)
    if number is None:
        spelled = re.sub(_FORGOTTEN_B, r"\1b", path)
        return None if spelled == path else model(spelled)
    family, place = index["entries"][number]
    return _shape(rule_files.table(f"models/{family}"), place)


def vocabularies(family: str) -> frozenset[int]:
    """The vocabulary sizes of all known models of a family."""
    return frozenset(_index()["vocabularies"].get(family, ()))


@cache
def every_vocabulary() -> frozenset[int]:
    """The vocabulary sizes of all known models that are no power of two, as the sides of other tensors are."""
    return frozenset(size for family in families() for size in vocabularies(family) if size & (size - 1))


def families() -> frozenset[str]:
    """The architectures of all known models."""
    return frozenset(_index()["vocabularies"])


def kin(path: str) -> list[Model]:
    """The models that an unknown name may be a variant of: those of its size whose family it names (CodeLlama-13b: Llama-2-13b). Every set
    of dimensions comes once."""
    name = path.strip().rstrip("/").rpartition("/")[2].lower()
    name += "".join(f" {root}" for word, root in rule_files.table("mentions")["kin"].items() if word in name)
    sizes = re.findall(r"(?<![\d.])(\d{1,4}(?:[.p]\d{1,2})?b)(?![a-z])", name)
    if not sizes:
        return []
    related = [
        (table, place)
        for table in rule_files.table("models").values()
        for place, entry in enumerate(table["models"])
        if any(_is_kin(alias.lower().rpartition("/")[2], sizes[0], name) for alias in (entry["id"], *entry["aliases"]))
    ]
    shapes = [_shape(table, place) for table, place in related]
    return list({(shape.h, shape.f, shape.L, shape.V): shape for shape in shapes}.values())[:MOST_KIN]


def _is_kin(alias: str, size: str, name: str) -> bool:
    """Whether an alias has this size, and its first word stands in a name."""
    if re.search(rf"[-_]{re.escape(size)}(?![a-z\d])", alias) is None:
        return False
    stem = re.match(r"[a-z]+", alias)
    return stem is not None and len(stem[0]) > 2 and stem[0] in name


def family_models(word: str) -> list[Model]:
    """The models of the family that a class is called after (`gptneox`), in the order of its table."""
    family = next((name for name in rule_files.table("models") if name.replace("_", "").replace("-", "") == word), None)
    if family is None:
        return []
    table = rule_files.table("models")[family]
    return [_shape(table, place) for place in range(len(table["models"]))]


def every_model() -> Iterator[Model]:
    """All known models, family by family."""
    for table in rule_files.table("models").values():
        yield from (_shape(table, place) for place in range(len(table["models"])))


def _shape(table: Mapping[str, Any], place: int) -> Model:
    """The model at a place in its family's table."""
    traits = {key: value for key, value in table.items() if key != "models"}
    return shape_of(table["models"][place], traits)


def _spellings(path: str) -> Iterator[str]:
    """Spellings to look up, most literal first: the whole path, its last part, that part without suffixes."""
    text = path.strip().strip("\"'").replace("\\", "/").rstrip("/").lower()
    yield text
    parts = [part for part in text.split("/") if part]
    cache_folder = next((part for part in parts if part.startswith("models--")), None)
    if cache_folder:  # the layout of the hub's cache: models--ORGANISATION--NAME/snapshots/REVISION
        yield from _without_endings(cache_folder.split("--")[-1])
        return
    while parts and re.fullmatch(_GENERIC_FOLDER, parts[-1]):
        parts.pop()
    for part in reversed(parts[-_NEAREST_FOLDERS:]):
        name = unescaped(part)
        yield from _without_endings(name)
        owner = re.match(r"([a-z][a-z0-9-]*?)(?:--|[._])(?=[a-z])", name)  # ORGANISATION.NAME as one folder
        if owner is not None and owner[1] in _index()["owners"]:
            yield from _without_endings(name[owner.end() :])


def unescaped(folder: str) -> str:
    """The name that a folder stands for: ModelScope writes a dot as `___`, transformers' copies of code write signs as words."""
    return folder.replace("___", ".").replace("_hyphen_", "-").replace("_dot_", ".")


def params_of_name(path: str) -> tuple[int, int, int] | None:
    """Least, likely and most parameters of a model whose name states its size (`7B`, `8x7B`, `100B-A10B`, `350m`); None where none is.

    Names round, small models more than large ones: those called 7B have 6.7 (Llama) to 8.5 billion (Gemma), those called 70B 70.6.
    A name with a number of experts counts what these share as often as there are experts.
    """
    name = unescaped(path.strip().strip("\"'").replace("\\", "/").rstrip("/"))
    sizes = [match for part in name.split("/")[-_NEAREST_FOLDERS:] for match in re.finditer(_SIZE, part)]
    if not sizes:
        return None
    experts, number, unit = sizes[-1 if len(sizes) == 1 else _largest(sizes)].groups()
    whole = 10**9 if unit in "bB" else 10**6
    likely = int(float(number) * whole) * int(experts or 1)
    if experts:
        return likely * 13 // 20, likely * 17 // 20, likely
    return likely * 93 // 100, likely, likely * 108 // 100 + min(10**9, likely // 4)


def _largest(sizes: list[re.Match[str]]) -> int:
    """Of several sizes in a name (`235B-A22B`, a folder and a model in it) the place of the largest."""
    return max(range(len(sizes)), key=lambda place: float(sizes[place][2]) * (1000 if sizes[place][3] in "bB" else 1))


def _without_endings(name: str) -> Iterator[str]:
    yield name
    for ending in (_STORAGE_SUFFIX, _TUNING_SUFFIX):
        while (shorter := re.sub(ending, "", name)) != name:
            name = shorter
            yield name


def _informal_spellings(name: str) -> Iterator[str]:
    """The name with normalized separators (`llama3_70b`, `llama-3-70b`: llama3-70b), then without the suffixes of users."""
    normalized = _normalize_separators(name)
    while True:
        yield from map(_normalize_separators, _without_endings(normalized))
        shorter = re.sub(_USER_SUFFIX, "", normalized)
        if shorter == normalized:
            return
        normalized = shorter


def _normalize_separators(name: str) -> str:
    """A name with `-` as its only separator, and none between the family and its first number."""
    return re.sub(r"^([a-z]+)-(?=\d)", r"\1", re.sub(r"[-_. :]+", "-", name).removeprefix("meta-"))


@cache
def _index() -> Any:
    return rule_files.kept("models.index", build_index, "models")


def _alike(one: int, other: int) -> bool:
    """Whether two numbers of parameters are those of one size of model: they differ by less than 3 %."""
    return abs(one - other) < 0.03 * max(one, other)


def build_index() -> dict[str, Any]:
    """Build the lookup tables, which are kept on disk. `names`: each unambiguous spelling -> its number in `entries`; `plain`: the same for
    names with normalized separators; `short`: names without their release, the first of several releases of one size; `owners`: their
    organisations; `entries`: the file of its family and its place there (only that file is read then);
    `vocabularies`: vocabulary sizes by family."""
    exact: dict[str, int] = {}
    shortened: dict[str, int | None] = {}
    normalized: dict[str, int | None] = {}
    short: dict[str, int | None] = {}
    entries: list[tuple[str, int]] = []
    sizes: list[int] = []
    for family, table in rule_files.table("models").items():
        for place, entry in enumerate(table["models"]):
            number = len(entries)
            entries.append((family, place))
            sizes.append(entry["total_params"])
            for alias in (entry["id"], *entry["aliases"]):
                exact.setdefault(alias.lower(), number)
                for name in _without_endings(alias.lower().rpartition("/")[2]):
                    shortened[name] = number if shortened.get(name, number) == number else None
                    spelling = _normalize_separators(name)
                    normalized[spelling] = number if normalized.get(spelling, number) == number else None
                    for unreleased in _without_endings(re.sub(_RELEASE_SUFFIX, "", name)):
                        spelling = _normalize_separators(unreleased)
                        first = short.setdefault(spelling, number)
                        if first is not None and not _alike(sizes[first], entry["total_params"]):
                            short[spelling] = None
    return {
        "names": {name: number for name, number in (shortened | exact).items() if number is not None},
        "plain": {name: number for name, number in normalized.items() if number is not None},
        "short": {name: number for name, number in short.items() if number is not None},
        "owners": sorted({alias.lower().partition("/")[0] for alias in exact if "/" in alias}),
        "entries": entries,
        "vocabularies": {
            family: [entry["vocab_size"] for entry in table["models"]] for family, table in rule_files.table("models").items()
        },
    }
