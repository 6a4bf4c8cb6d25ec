"""What an entry point of a published package declares: its options with types, choices and defaults, read from the source, never run."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

#: How deep classes are followed through the blocks of a configuration.
DEEPEST = 6


@dataclass(frozen=True)
class Option:
    """One option. `kind`: bool, int, float, str or empty; `choices` and `default` where the source says them as literals; `dashes`:
    whether its command line wants them between the words of its name, None where it takes both spellings or there is one word."""

    kind: str = ""
    choices: tuple[str, ...] = ()
    default: object = None
    block: bool = False
    dashes: bool | None = None


@dataclass
class Declared:
    """The options of one entry point. An option that is no block of declared ones takes any key below it; `leaves`: any block may."""

    options: dict[str, Option] = field(default_factory=dict)
    leaves: bool = False

    def find(self, key: str) -> Option | None:
        """The option of a dotted key, spelled with _ or -."""
        name = key.lstrip("+-~").replace("-", "_")
        if name in self.options:
            return self.options[name]
        if self.leaves:
            return self.options.get(name.rpartition(".")[2])
        parts = name.split(".")
        parents = [self.options.get(".".join(parts[:count])) for count in range(1, len(parts))]
        return Option() if any(parent is not None and not parent.block for parent in parents) else None


class Trees:
    """Some unpacked packages, in which classes are found by name."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(roots)

    def find(self, name: str, near: Path | None = None) -> tuple[Path, ast.ClassDef] | None:
        """The class of this name (or `end/of/path.py:Name`): in the same file, the same package, else anywhere; with fields rather than
        without."""
        ending, _, name = name.rpartition(":")
        if ending:
            places = [place for root in self.roots for place in _places(root, name) if str(place[0]).endswith(f"/{ending}")]
            return places[0] if places else None
        alias = _aliases(near).get(name) if near is not None else None
        if alias and near is not None:
            places = [place for root in self.roots for place in _places(root, alias) if place[0] != near]
            return max(places, key=lambda place: (bool(_own_fields(place[1])), -_common(place[0], near)), default=None)
        found = [place for root in self.roots for place in _places(root, name)]
        if near is not None:
            found.sort(key=lambda place: (place[0] != near, _common(place[0], near)))
        else:
            found.sort(key=lambda place: (-len(_own_fields(place[1])), str(place[0])))
        return found[0] if found else None

    def fields(self, name: str, near: Path | None = None, seen: frozenset[str] = frozenset()) -> dict[str, tuple[ast.AnnAssign, Path]]:
        """The annotated fields of a class and its bases, by name."""
        place = self.find(name, near)
        if place is None or (name in seen and near == place[0]):
            return {}
        path, node = place
        fields: dict[str, tuple[ast.AnnAssign, Path]] = {}
        for base in reversed(node.bases):
            word = _last(base)
            if word and word != name:
                fields.update(self.fields(word, path, seen | {name}))
            elif word == name:  # a class that extends its namesake of another package
                others = [one for root in self.roots for one in _places(root, word) if one[0] != path and _own_fields(one[1])]
                for other, base_node in others[:1]:
                    fields.update(self._of(other, base_node, seen | {name}))
        fields.update({assign.target.id: (assign, path) for assign in _own_fields(node)})  # type: ignore[union-attr]
        return fields

    def _of(self, path: Path, node: ast.ClassDef, seen: frozenset[str]) -> dict[str, tuple[ast.AnnAssign, Path]]:
        fields: dict[str, tuple[ast.AnnAssign, Path]] = {}
        for base in reversed(node.bases):
            word = _last(base)
            if word and word not in seen:
                fields.update(self.fields(word, path, seen))
        fields.update({assign.target.id: (assign, path) for assign in _own_fields(node)})  # type: ignore[union-attr]
        return fields

    def options(self, name: str, prefix: str = "", near: Path | None = None, depth: int = 0) -> Iterator[tuple[str, Option]]:
        """The options of a class and, dotted, of the blocks in it."""
        for key, (assign, path) in self.fields(name, near).items():
            option = _option(assign)
            block = next((word for word in re.findall(r"\b[A-Z]\w+", ast.unparse(assign.annotation)) if word not in _TYPING), None)
            inner = block if depth < DEEPEST and block and self.find(block, path) and self.fields(block, path) else None
            yield f"{prefix}{key}", replace(option, block=True) if inner else option
            aliases = _alias(assign)
            if aliases:
                yield f"{prefix}{aliases}", option
            if inner:
                yield from self.options(inner, f"{prefix}{key}.", path, depth + 1)


_TYPING = frozenset(
    [
        "Optional",
        "Literal",
        "Union",
        "List",
        "Dict",
        "Any",
        "Annotated",
        "Sequence",
        "Callable",
        "Type",
        "Tuple",
        "Set",
        "Path",
        "Field",
        "StrictBool",
        "None",
        "Iterable",
    ]
)


@cache
def _index(root: Path) -> dict[str, list[Path]]:
    """The files that define each class."""
    found: dict[str, list[Path]] = {}
    for path in sorted(root.rglob("*.py")):
        if "/models/" in str(path) and "transformers" in root.name:
            continue
        for name in set(re.findall(r"^[ \t]*class (\w+)", path.read_text(errors="replace"), re.MULTILINE)):
            found.setdefault(name, []).append(path)
    return found


@cache
def _defined(path: Path) -> dict[str, ast.ClassDef]:
    """The classes of a file."""
    try:
        tree = ast.parse(path.read_text(errors="replace"))
    except SyntaxError:
        return {}
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _places(root: Path, name: str) -> list[tuple[Path, ast.ClassDef]]:
    return [(path, _defined(path)[name]) for path in _index(root).get(name, ()) if name in _defined(path)]


@cache
def _aliases(path: Path) -> dict[str, str]:
    """Names under which a file imports others."""
    return {new: old for old, new in re.findall(r"\b(\w+) as (\w+)\b", path.read_text(errors="replace")) if old[:1].isupper()}


def _own_fields(node: ast.ClassDef) -> list[ast.AnnAssign]:
    return [
        one
        for one in node.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and "ClassVar" not in ast.unparse(one.annotation)
    ]


def _common(one: Path, other: Path) -> int:
    """How unlike two paths are."""
    return -sum(a == b for a, b in zip(one.parts, other.parts, strict=False))


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        return _last(node.value)
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _literal(node: ast.expr | None) -> object:
    try:
        return ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, SyntaxError):
        return None


def _kind(text: str) -> str:
    found = set(re.findall(r"\b(bool|int|float|str)\b", text))
    return (
        "str" if "str" in found or len(found) > 2 else "float" if "float" in found else "int" if "int" in found else "bool" if found else ""
    )


def _option(assign: ast.AnnAssign) -> Option:
    text = ast.unparse(assign.annotation)
    # the last Literal of nested annotations holds them all
    choices = [str(_literal_word(word)) for group in re.findall(r"Literal\[([^\]]*)\]", text) for word in group.split(",")]
    value = assign.value
    default = _literal(value)
    if isinstance(value, ast.Call):
        words = {one.arg: one.value for one in value.keywords}
        default = _literal(words.get("default") or (value.args[0] if value.args else None))
    if not re.fullmatch(r"(?:typing\.)?(?:Optional\[)?(?:typing\.)?Literal\[[^\]]*\](?:\])?(?: \| None)?", text):
        choices = []
    return Option("" if choices else _kind(text), tuple(choices), default)


def _literal_word(word: str) -> object:
    return _literal(ast.parse(word.strip(), mode="eval").body) if word.strip() else ""


def _alias(assign: ast.AnnAssign) -> str:
    if isinstance(assign.value, ast.Call):
        for one in assign.value.keywords:
            if one.arg in ("alias", "validation_alias") and isinstance(_literal(one.value), str):
                return str(_literal(one.value))
    return ""


def _of_parser(path: Path) -> Iterator[tuple[str, Option]]:
    """The options of every add_argument call of a file, and of every option of click."""
    for node in ast.walk(ast.parse(path.read_text(errors="replace"))):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("add_argument", "option")):
            continue
        words = {one.arg: one.value for one in node.keywords}
        kind = _kind(ast.unparse(words["type"])) if "type" in words else ""
        if "action" in words and str(_literal(words["action"])).startswith("store_"):
            kind = "flag"
        choices = _literal(words.get("choices"))
        many = tuple(map(str, choices)) if isinstance(choices, (list, tuple)) else ()
        names = [str(_literal(arg))[2:] for arg in node.args if str(_literal(arg)).startswith("--")]
        for name in names:
            plain = name.replace("-", "_")
            is_free = "_" not in plain or {name, plain, plain.replace("_", "-")} <= set(names)
            yield plain, Option(kind, many, _literal(words.get("default")), dashes=None if is_free else "-" in name)


def _of_clap(path: Path) -> Iterator[tuple[str, Option]]:
    """The options of a Rust program: fields under `#[clap(long)]`, and the variants of those that are enumerations."""
    text = path.read_text(errors="replace")
    for kind, name, of in re.findall(r"#\[clap\(([^\]]*\blong\b[^\]]*)\)\]\s*(\w+):\s*(?:Option<)?(\w+)", text):
        variants = re.search(rf"enum {of} \{{(.*?)\n\}}", text, re.DOTALL) if "value_enum" in kind else None
        words = re.findall(r"^    (?:\w+)(?=,)", variants[1], re.MULTILINE) if variants else []
        choices = tuple(re.sub(r"(?<=[a-z])(?=[A-Z0-9])", "-", word.strip()).lower() for word in words)
        yield (
            name,
            Option(
                "" if choices else _kind(of.replace("usize", "int").replace("u32", "int").replace("f32", "float")), choices, dashes=True
            ),
        )


def _of_lists(path: Path) -> Iterator[tuple[str, Option]]:
    """The options of a C++ program: lists of words with dashes, and what stands for a value behind them."""
    text = path.read_text(errors="replace")
    for words, value in re.findall(r"\{((?:\s*\"--?[\w-]+\",?)+)\s*\}(,\s*\"(?:N|[^\"]*)\",)?", text):
        for name in re.findall(r"\"--?([\w-]+)\"", words):
            yield name.replace("-", "_"), Option("int" if re.match(r",\s*\"N\"", value) else "")


def _of_factories(path: Path, trees: Trees) -> Iterator[tuple[str, Option]]:
    """The options that Megatron makes of the fields of its classes (ArgumentGroupFactory)."""
    for name in dict.fromkeys(re.findall(r"ArgumentGroupFactory\(\s*(\w+)", path.read_text(errors="replace"))):
        for key, (assign, _) in trees.fields(name, path).items():
            option = _option(assign)
            yield key, option
            yield f"no_{key}", Option("flag")
            yield from ((word.replace("-", "_"), Option()) for word in re.findall(r"'--([\w-]+)'", ast.unparse(assign)))


def _of_function(path: Path, name: str, trees: Trees) -> Iterator[tuple[str, Option]]:
    for node in ast.walk(ast.parse(path.read_text(errors="replace"))):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            for arg in [*node.args.args, *node.args.kwonlyargs]:
                text = ast.unparse(arg.annotation) if arg.annotation else ""
                yield arg.arg, Option(_kind(text))
                for word in re.findall(r"\b[A-Z]\w+Args\b", text):
                    yield from trees.options(word, f"{arg.arg}.")


def _of_reads(path: Path) -> Iterator[tuple[str, Option]]:
    """The keys of `cfg` that a script reads, or that the file of its defaults (`_C`) sets."""
    text = path.read_text(errors="replace")
    for name in re.findall(r"\b(?:cfg|config|_C)\.((?!get\b|pop\b)[A-Za-z_][\w.]*)", text):
        yield name.removesuffix(".get"), Option()
    for block, name in re.findall(r"\bcfg\.?([\w.]*?)\.?(?:get|pop)\(\s*\"(\w+)\"", text):
        yield f"{block}.{name}".lstrip("."), Option()
    yield from ((name, Option()) for name in re.findall(r"cfg\[\"(\w+)\"\]", text))


def _of_tree(data: object, prefix: str = "") -> Iterator[tuple[str, Option]]:
    for key, value in data.items() if isinstance(data, dict) else ():
        kind = type(value).__name__ if isinstance(value, (bool, int, float, str)) else ""
        yield f"{prefix}{key}", Option(kind, (), value if kind else None, isinstance(value, dict) and bool(value))
        yield from _of_tree(value, f"{prefix}{key}.")


def hydra_config(folder: Path, name: str) -> Any:
    """A configuration composed by Hydra itself."""
    from hydra import compose, initialize_config_dir  # type: ignore[import-not-found]
    from hydra.core.global_hydra import GlobalHydra  # type: ignore[import-not-found]
    from omegaconf import OmegaConf  # type: ignore[import-not-found]

    GlobalHydra.instance().clear()
    with initialize_config_dir(config_dir=str(folder), version_base=None):
        return OmegaConf.to_container(compose(config_name=name), resolve=False)


def declared(entry: Mapping[str, Any], root: Path, beside: Sequence[Path]) -> Declared:
    """What an entry of packages.yaml declares in this tree."""
    trees, result = Trees([root, *beside]), Declared(leaves=entry.get("leaves", False))
    for name in entry.get("classes", ()):
        result.options.update(trees.options(name, depth=0 if entry.get("blocks") else DEEPEST))
    files = entry.get("files", {})
    for prefix, pattern in files.items() if isinstance(files, Mapping) else (("", pattern) for pattern in files):
        for path in sorted(root.glob(pattern)):
            for node in ast.walk(ast.parse(path.read_text(errors="replace"))):
                if isinstance(node, ast.ClassDef):
                    result.options.update({f"{prefix}{one.target.id}": _option(one) for one in _own_fields(node)})  # type: ignore[union-attr]
    for path in (tree / name for name in entry.get("parsers", ()) for tree in (root, *beside)):
        if path.is_file():
            result.options.update(_of_parser(path))
    for path in (path for pattern in entry.get("trees", ()) for path in sorted(root.glob(pattern))):
        text = path.read_text(errors="replace")
        result.options.update(_of_tree(tomllib.loads(text) if path.suffix == ".toml" else yaml.safe_load(text)))
    for path in (tree / entry.get("generated", "") for tree in (root, *beside)):
        if path.is_file():
            result.options = {**dict(_of_factories(path, trees)), **result.options}
    _add_rest(result, entry, root, trees)
    result.options = {name.replace("-", "_"): option for name, option in result.options.items()}
    return result


def _add_rest(result: Declared, entry: Mapping[str, Any], root: Path, trees: Trees) -> None:
    """What functions, scripts, programs in other languages, Hydra and words of source files declare."""
    for kind, read in (("clap", _of_clap), ("options", _of_lists)):
        for name in entry.get(kind, ()):
            result.options.update(read(root / name))
    for name, function in entry.get("functions", ()):
        for path in (tree / name for tree in trees.roots if (tree / name).is_file()):
            result.options.update(_of_function(path, function, trees))
    for name in entry.get("read", ()):
        if (root / name).is_file():
            result.options.update(_of_reads(root / name))
    if "hydra" in entry:
        folder, *names = entry["hydra"]
        for name in names:
            result.options.update(_of_tree(hydra_config(root / folder, name)))
    result.options.update({name: Option() for name in entry.get("names", ())})
    for path in (path for name in entry.get("words", ()) for path in sorted(root.glob(name))):
        text = path.read_text(errors="replace")
        result.options.update({word: Option() for word in re.findall(r"[\"'](\w+)[\"']", text)})
        result.options.update({word: Option() for word in re.findall(r"^    (\w+): ", text, re.MULTILINE)})
