"""Patterns in a script that explain why memory fills, with their lines: rules/code/*.yaml, matched against the syntax tree. Nothing is run.

A pattern is Python in which `$NAME` stands for any expression, and `...` among the arguments for any further ones.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from diagnose import rule_files
from diagnose.adapters.python.code_context import CodeContext, TooMuchCode
from diagnose.adapters.python.code_excerpts import Excerpt, parse_excerpt
from diagnose.adapters.python.script_calls import callee_name
from diagnose.facts import Fact, Origin, Witness, require_declared

_HOLE = "hole_"
_HOLE_NAME = re.compile(r"\$(\w+)")
SHOWN = 120  # characters of a statement
_MOST_NODES = 60_000
#: What a line of Python begins with, and the part of a text's lines that look so where it is Python.
_CODE = re.compile(
    r"\s*(?:>>> |\.\.\. |import |from \w|for .{1,200}:|while .{1,200}:|with |def |class |if |else:|elif |try:|except|return\b|yield|@\w|#"
    r"|[)\]}]|[A-Za-z_][\w.\[\]'\", ]{0,120}? ?[-+*/|]?= ?\S|[A-Za-z_][\w.]{0,120}\()"
)
_LEAST_CODE = 0.4

Bindings = dict[str, ast.expr]


@dataclass(slots=True)
class Pattern:
    """One way to write what a file of rules/code describes, with its conditions (`diagnose/vet/schemas.py` lists them)."""

    fact: str
    take: ast.AST
    rule: Mapping[str, Any]
    words: tuple[str, ...]  # names that a text must hold


@dataclass(slots=True)
class Match:
    """A pattern in a text: its fact, the line of the text (from 1), the statement as it is written, and what to write instead."""

    fact: str
    line: int
    statement: str
    instead: str


def facts(text: str, source: str, first: int = 1, origin: Origin = "config", beside: str = "") -> list[Fact]:
    """The patterns of a text as facts, the first of each kind. `first`: the number of the text's first line in its source; `beside`: other
    code of the same program."""
    result: dict[str, Fact] = {}
    for match in matches(text, beside):
        line = match.line + first - 1
        shown = f"{match.statement} -> {match.instead}" if match.instead else match.statement
        place = f"{source.rpartition('/')[2]}:{line}"
        witness = Witness(source, line, 0, match.statement)
        value = f"{place}: {shown}".replace("{", "(").replace("}", ")")
        result.setdefault(match.fact, Fact(match.fact, True if require_declared(match.fact).kind == "switch" else value, origin, witness))
    return list(result.values())


def matches(text: str, beside: str = "") -> list[Match]:
    """All patterns in a text, in the order of the table; none where it is no Python."""
    lines = [line for line in text.split("\n") if line.strip()]
    if sum(_CODE.match(line) is not None for line in lines) < _LEAST_CODE * len(lines):
        return []
    wanted = [pattern for pattern in _patterns() if all(word in text for word in pattern.words)]
    excerpt = parse_excerpt(text) if wanted else None
    if excerpt is None:
        return []
    found: list[Match] = []
    with suppress(RecursionError, TooMuchCode):  # what was found until then holds
        context = CodeContext(excerpt.tree)
        if len(context.nodes) <= _MOST_NODES:
            for pattern in wanted:
                found += _matches(pattern, excerpt, context, f"{text}\n{beside}")
    return found


def _matches(pattern: Pattern, excerpt: Excerpt, context: CodeContext, text: str) -> Iterator[Match]:
    rule = pattern.rule
    if any(re.search(words, text) for words in rule.get("unless_text", ())) or not all(
        re.search(words, text) for words in rule.get("text", ())
    ):
        return
    for node in _candidates(context.inside(context.tree), [pattern.take]):
        bound: Bindings = {}
        if _unify(pattern.take, node, bound) and _holds(rule, node, bound, context):
            line = getattr(node, "lineno", 1)
            shown = excerpt.text(line)
            yield Match(pattern.fact, excerpt.line(line), _short(shown), _short(_instead(rule, shown, bound)))


def _holds(rule: Mapping[str, Any], node: ast.AST, bound: Bindings, context: CodeContext) -> bool:
    for name, condition in rule.get("where", {}).items():
        if not _is_like(condition, bound[name], context):
            return False
    if not all(context.is_in(place, node) for place in rule.get("in", ())) or any(
        context.is_in(place, node) for place in rule.get("not_in", ())
    ):
        return False
    if "arguments" in rule and isinstance(node, ast.Call) and len(node.args) > rule["arguments"]:
        return False
    if "lacks" in rule and isinstance(node, ast.Call) and any(word.arg in rule["lacks"] or word.arg is None for word in node.keywords):
        return False
    if "method" in rule and not re.search(rule["method"], _attribute(node)):
        return False
    if any(_elsewhere(condition, node, bound, context) is not None for condition in rule.get("unless", ())):
        return False
    for condition in rule.get("with", ()):
        more = _elsewhere(condition, node, bound, context)
        if more is None:
            return False
        bound = more
    names = [ast.unparse(bound[name]) for name in rule.get("distinct", ())]
    return len(set(names)) == len(names)


def _attribute(node: ast.AST) -> str:
    """The name of the method that a call, or an assigned call or attribute, names last."""
    value = node.value if isinstance(node, ast.Assign) else node
    return callee_name(value.func if isinstance(value, ast.Call) else value) if isinstance(value, ast.expr) else ""


def _is_like(condition: Any, node: ast.expr, context: CodeContext) -> bool:
    """Whether an expression is what the table says: a kind, `not` of one, or a pattern of its text (`like`, `unlike`)."""
    if isinstance(condition, list):
        return all(_is_like(part, node, context) for part in condition)
    if isinstance(condition, str):
        return not context.is_a(condition[4:], node) if condition.startswith("not ") else context.is_a(condition, node)
    text = ast.unparse(node)
    if "like" in condition and not re.search(condition["like"], text):
        return False
    return "unlike" not in condition or not re.search(condition["unlike"], text)


def _elsewhere(condition: Mapping[str, Any], node: ast.AST, bound: Bindings, context: CodeContext) -> Bindings | None:
    """What the names stand for where another pattern stands in the script as well; None where it does not.

    take: one of several; within: the outermost or the inner loop, or the function, that both stand in; before, after: above or below.
    """
    within = condition.get("within")
    loops = context.loops(node) if within in ("loop", "inner") else ()
    if within in ("loop", "inner") and not loops:
        return None
    area = loops[0 if within == "inner" else -1] if loops else context.function(node) if within == "function" else context.tree
    line = getattr(node, "lineno", 0)
    takes = [_parsed(take) for take in ([condition["take"]] if isinstance(condition["take"], str) else condition["take"])]
    own = context.statement(node)
    for other in _candidates(context.inside(area), takes):
        context.spend(1)
        if other is node or context.statement(other) is own:
            continue
        at = getattr(other, "lineno", 0)
        if ("before" in condition and at >= line) or ("after" in condition and at <= line):
            continue
        for take in takes:
            inner = dict(bound)
            if _unify(take, other, inner) and all(
                _is_like(rule, inner[name], context) for name, rule in condition.get("where", {}).items()
            ):
                return inner
    return None


def _candidates(nodes: Mapping[type, list[ast.AST]], takes: Sequence[ast.AST]) -> Iterable[ast.AST]:
    """The nodes that may have the form of one of these patterns, by their type."""
    if any(isinstance(take, ast.Name) for take in takes):  # perhaps a hole, which any expression fills
        return chain.from_iterable(nodes.values())
    return chain.from_iterable(nodes.get(kind, ()) for kind in dict.fromkeys(type(take) for take in takes))


def _instead(rule: Mapping[str, Any], line: str, bound: Bindings) -> str:
    """The line as it should be written; "" where the table names no change of it."""
    change = rule.get("change")
    if not change:
        return ""
    filled = _HOLE_NAME.sub(lambda hole: _operand(bound[hole[1]]) if hole[1] in bound else hole[0], change)
    target = rule.get("changes")
    if target is None:
        return filled.replace("LINE", line)
    old = ast.unparse(bound[target])
    at = line.rfind(old)
    return f"{line[:at]}{filled}{line[at + len(old) :]}" if at >= 0 else ""


def _operand(node: ast.expr) -> str:
    """The expression as text to which a method can be added."""
    text = ast.unparse(node)
    return f"({text})" if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.IfExp)) else text


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


# -- matching


def _unify(pattern: ast.AST, node: ast.AST, bound: Bindings) -> bool:
    """Whether a node has the form of the pattern; `bound` gets what each `$NAME` stands for, the same wherever the name stands."""
    if isinstance(pattern, ast.Name) and pattern.id.startswith(_HOLE):
        if not isinstance(node, ast.expr):
            return False
        name = pattern.id[len(_HOLE) :]
        if name == "_":
            return True
        known = bound.setdefault(name, node)
        return known is node or _reads_alike(known, node)
    if type(pattern) is not type(node):
        return False
    if isinstance(pattern, ast.Call):
        assert isinstance(node, ast.Call)
        return _unify(pattern.func, node.func, bound) and _unify_arguments(pattern, node, bound)
    for field in pattern._fields:
        if field in ("ctx", "type_comment", "kind") or (field == "ifs" and not getattr(pattern, field)):
            continue
        if not _unify_field(getattr(pattern, field, None), getattr(node, field, None), bound):
            return False
    return True


def _reads_alike(one: ast.expr, other: ast.expr) -> bool:
    """Whether two expressions are written alike. Names, the most frequent, are compared without writing them out."""
    if type(one) is not type(other):
        return False
    return one.id == other.id if isinstance(one, ast.Name) and isinstance(other, ast.Name) else ast.unparse(one) == ast.unparse(other)


def _unify_field(own: object, other: object, bound: Bindings) -> bool:
    if isinstance(own, ast.AST):
        return isinstance(other, ast.AST) and _unify(own, other, bound)
    if isinstance(own, list):
        return (
            isinstance(other, list) and len(own) == len(other) and all(_unify_field(a, b, bound) for a, b in zip(own, other, strict=True))
        )
    if isinstance(own, str) and own.startswith(_HOLE):  # the name of an attribute
        return isinstance(other, str)
    return own == other


def _unify_arguments(pattern: ast.Call, node: ast.Call, bound: Bindings) -> bool:
    is_open = bool(pattern.args) and isinstance(pattern.args[-1], ast.Constant) and pattern.args[-1].value is ...
    wanted: Sequence[ast.expr] = pattern.args[:-1] if is_open else pattern.args
    if len(node.args) < len(wanted) or (not is_open and len(node.args) != len(wanted)):
        return False
    if not all(_unify(own, other, bound) for own, other in zip(wanted, node.args, strict=False)):
        return False
    words = {word.arg: word.value for word in node.keywords}
    names = {word.arg for word in pattern.keywords}
    if not is_open and set(words) - names:
        return False
    return all(word.arg in words and _unify(word.value, words[word.arg], bound) for word in pattern.keywords)


@cache
def _parsed(pattern: str) -> ast.AST:
    """The tree of a pattern: an expression, or a statement."""
    statement = ast.parse(_HOLE_NAME.sub(rf"{_HOLE}\1", pattern)).body[0]
    return statement.value if isinstance(statement, ast.Expr) else statement


@cache
def _patterns() -> tuple[Pattern, ...]:
    """All ways of writing of all files, most telling first within each file."""
    rows = []
    for table in rule_files.table("code").values():
        for rule in table["find"]:
            take = _parsed(rule["take"])
            words = [word for word in re.findall(r"(?<![\w$\"'])([A-Za-z_]\w{2,})", rule["take"]) if not keyword.iskeyword(word)]
            words += ["backward"] if "training" in rule.get("in", ()) else []
            rows.append(Pattern(table["fact"], take, rule, tuple(words)))
    return tuple(rows)
