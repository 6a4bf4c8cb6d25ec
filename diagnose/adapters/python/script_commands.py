"""Commands that a Python script starts: lists of words that it builds, and texts that it hands to a shell. Nothing is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import count

from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.launch.launch_command import Launch, starts_program, text_launches, text_words, words_launches
from diagnose.adapters.python.script_calls import callee_name, nodes_of, parse_script, scalar_text
from diagnose.adapters.python.script_names import ScriptNames
from diagnose.adapters.python.script_values import NodePlaces
from diagnose.adapters.shell.shell_arithmetic import evaluate
from diagnose.adapters.shell.shell_text import Chars, Word

#: Functions that run a command.
_RUNNERS = frozenset({"system", "popen", "run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput"})
_RUNNERS |= {"create_subprocess_shell", "create_subprocess_exec", "exec_command", "execvp"}
#: Functions that leave a text as it is, as far as a command is concerned.
_TEXTS = frozenset({"str", "int", "float", "quote", "fspath", "Path"})
_SAME_TEXT = frozenset({"strip", "rstrip", "lstrip", "dedent", "cleandoc"})
_BRANCHES = (ast.If, ast.For, ast.While, ast.Try, ast.Match)
_OPENING = re.compile(r"([A-Za-z]{0,2})('''|\"\"\"|'|\")")
_BLANK = re.compile(r"(?:\s+|\\\n|#[^\n]*|[()])*")
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_FIELD = re.compile(r"\{(\w*)[^{}]*\}|%[sdg]")
#: Expressions that stand for the interpreter.
_INTERPRETERS = {"sys.executable": "python"}
_SUM = re.compile(r"[\w\s()*/%+-]{1,80}")
_MAX_WORDS = 2000
_FEW_OPTIONS = 3  # of a text that is nothing but options
_MAX_DEPTH = 12


def script_launches(text: str, environment: Sequence[Leaf] = ()) -> list[Launch]:
    """The launches in a script's lists and texts, each value where it is written. `environment`: what the script writes to os.environ,
    which its commands inherit. Raises Unreadable for what is not Python."""
    if "-" not in text and "=" not in text:
        return []
    env = {leaf.key: Word(leaf.text or "", leaf.start, leaf.end, leaf.shape == "scalar") for leaf in environment}
    return list(_CommandReader(text).launches(env))


class _CommandReader:
    """Evaluates the expressions of a script that may be commands, with the offsets of their characters."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tree = parse_script(text)
        self._names = ScriptNames.from_tree(self._tree)
        self._span = NodePlaces(text).span
        self._lists: dict[str, list[Word]] = {}
        self._budget = 20 * _MAX_WORDS
        self._collect_lists()

    def launches(self, env: dict[str, Word]) -> Iterator[Launch]:
        tracked = {id(node.value) for node in nodes_of(self._tree) if isinstance(node, (ast.Assign, ast.AugAssign)) and _name_of(node)}
        for words in self._lists.values():
            yield from self._of_words(words, env)
        for node in nodes_of(self._tree):
            if isinstance(node, (ast.List, ast.Tuple)) and id(node) not in tracked and len(node.elts) > 1:
                yield from self._of_words(self._words(node, 0) or [], env)
            elif isinstance(node, ast.Assign) or (isinstance(node, ast.Call) and callee_name(node.func) in _RUNNERS and node.args):
                value = node.value if isinstance(node, ast.Assign) else node.args[0]
                if isinstance(value, ast.Call) and callee_name(value.func) == "split" and id(value) not in tracked:
                    yield from self._of_words(self._words(value, 0) or [], env)
                elif _is_text(value) and not self._joins_known_list(value):
                    chars = self._chars(value, 0)
                    nested = text_launches(chars, {**env, **self._env_of(node)})
                    if any(starts_program(launch) and launch.flags for launch in nested):
                        yield from nested
                    elif chars.text.startswith("--") and chars.text.count(" --") >= _FEW_OPTIONS:  # which another text or call starts
                        yield from words_launches(text_words(chars), env, self.text)

    def _joins_known_list(self, node: ast.expr) -> bool:
        """Whether a text is made of a list that is read by its name."""
        joined = node.args[0] if isinstance(node, ast.Call) and callee_name(node.func) == "join" else None
        return isinstance(joined, ast.Name) and joined.id in self._lists

    def _of_words(self, words: Sequence[Word], env: dict[str, Word]) -> list[Launch]:
        is_command = bool(words) and words[0].sure and any(word.text.startswith("--") or "=" in word.text for word in words[1:])
        has_option = any(word.text.startswith("--") for word in words) or (is_command and starts_any(words, self.text))
        return words_launches(words, env, self.text) if is_command and has_option else []

    def _env_of(self, node: ast.Assign | ast.Call) -> dict[str, Word]:
        """`env={**os.environ, "NAME": "1"}` of a call."""
        value = next((word.value for word in node.keywords if word.arg == "env"), None) if isinstance(node, ast.Call) else None
        value = self._names.follow(value) if value is not None else None
        pairs = zip(value.keys, value.values, strict=True) if isinstance(value, ast.Dict) else ()
        return {str(key.value): self._word(inner, 0) for key, inner in pairs if isinstance(key, ast.Constant)}

    # -- lists

    def _collect_lists(self) -> None:
        """The words of each list that a name stands for, with what is added to it later; unsure if only some branch adds it."""
        branches = {id(inner): id(node) for node in nodes_of(self._tree) if isinstance(node, _BRANCHES) for inner in ast.walk(node)}
        homes: dict[str, int | None] = {}
        statements = [node for node in nodes_of(self._tree) if isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr))]
        for node in sorted(statements, key=lambda node: (node.lineno, node.col_offset)):
            name, branch = _name_of(node), branches.get(id(node))
            if isinstance(node, ast.Assign) and name:
                words = self._words(node.value, 0)
                if words is not None:
                    self._lists[name], homes[name] = words[:_MAX_WORDS], branch
                continue
            if name not in self._lists:
                continue
            added = self._added(node)
            sure = branch == homes[name]
            self._lists[name] = [
                *self._lists[name],
                *(word if sure else Word(word.text, word.start, word.end, False, word.chars) for word in added),
            ][:_MAX_WORDS]

    def _added(self, node: ast.AST) -> list[Word]:
        """What `+=`, append and extend add to a list."""
        if isinstance(node, ast.AugAssign):
            return self._words(node.value, 0) or []
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and call.args:
            return [self._word(call.args[0], 0)] if callee_name(call.func) == "append" else self._words(call.args[0], 0) or []
        return []

    def _words(self, node: ast.expr, depth: int) -> list[Word] | None:
        """The words of a list; None for what is no list that is known here."""
        self._budget -= 1
        if depth > _MAX_DEPTH or self._budget < 0:
            return None
        if isinstance(node, (ast.List, ast.Tuple)):
            words: list[Word] = []
            for item in node.elts[:_MAX_WORDS]:
                inner = self._words(item.value, depth + 1) if isinstance(item, ast.Starred) else [self._word(item, depth + 1)]
                words += inner if inner is not None else [Word(f"${ast.unparse(item)}", *self._span(item), False)]
            return words
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self._words(node.left, depth + 1), self._words(node.right, depth + 1)
            return None if left is None or right is None else [*left, *right]
        if isinstance(node, ast.Call) and callee_name(node.func) == "split" and isinstance(node.func, ast.Attribute):
            text = node.args[0] if node.args and callee_name(node.func.value) == "shlex" else node.func.value
            return text_words(self._chars(text, depth + 1)) if _is_text(text) or isinstance(text, ast.Name) else None
        if isinstance(node, ast.Name) and node.id in self._lists:
            return self._lists[node.id]
        value = self._names.follow(node)
        return self._words(value, depth + 1) if value is not node else None

    def _word(self, node: ast.expr, depth: int) -> Word:
        value = self._names.resolve(node)
        chars = self._chars(node, depth)
        start, end = self._span(value.node)
        if isinstance(value.node, (ast.JoinedStr, ast.Call, ast.BinOp)) and chars.starts:
            opening = _OPENING.match(self.text, start)
            start = opening.start(2) if opening and len(opening[2]) == 1 else chars.starts[0]
            end = end if opening and len(opening[2]) == 1 else chars.ends[-1]
        return Word(chars.text, start, max(start, end), chars.sure, chars if len(chars.starts) == len(chars.text) else None)

    # -- texts

    def _chars(self, node: ast.expr, depth: int) -> Chars:
        """The text that an expression stands for; unknown where only a running script knows it."""
        chars = self._expression(node, depth)
        self._budget -= len(chars.text) >> 4  # names may repeat each other's texts without end
        return chars

    def _expression(self, node: ast.expr, depth: int) -> Chars:
        start, end = self._span(node)
        self._budget -= 1
        if depth > _MAX_DEPTH or self._budget < 0:
            return Chars.unknown("...", start, end)
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            return self._literal(start, end, depth)
        if isinstance(node, ast.Constant) and node.value is not None:
            chars = Chars()
            chars.add(str(node.value), start, end)
            return chars
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            chars = self._chars(node.left, depth + 1)
            joined = Chars(chars.text, list(chars.starts), list(chars.ends), chars.sure)
            joined.extend(self._chars(node.right, depth + 1))
            return joined
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
            return self._filled(node.left, values, {}, depth)
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        value = self._names.resolve(node)
        if value.node is node:
            written = ast.unparse(node)
            return self._computed(_INTERPRETERS.get(written, written), start, end)
        chars = self._chars(value.node, depth + 1)
        return Chars(chars.text, chars.starts, chars.ends, chars.sure and not value.option)

    def _computed(self, written: str, start: int, end: int) -> Chars:
        """The value of an expression that is a plain word or computes with whole numbers; unknown for any other."""

        def value_of(name: str) -> str | None:
            return scalar_text(self._names.follow(ast.Name(name)))

        number = evaluate(written.replace("//", "/"), value_of) if _SUM.fullmatch(written) else None
        if number is None and written not in _INTERPRETERS.values():
            return Chars.unknown(written[:200], start, end)
        chars = Chars()
        chars.add(written if number is None else str(number), start, end)
        return chars

    def _call(self, node: ast.Call, depth: int) -> Chars:
        name, argument = callee_name(node.func), node.args[0] if node.args else None
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if name == "join" and argument is not None and (words := self._words(argument, depth + 1)) is not None:
            chars = Chars()
            for word in words:
                if chars.text:
                    chars.add(" ", word.start, word.start)
                chars.extend(word.chars or Chars(word.text, [word.start] * len(word.text), [word.end] * len(word.text), word.sure))
            return chars
        if name == "format" and owner is not None:
            return self._filled(owner, node.args, {word.arg: word.value for word in node.keywords if word.arg}, depth)
        if name in _SAME_TEXT and (argument is not None or owner is not None):
            return self._chars(argument if argument is not None and not _is_text(owner) else owner or node, depth + 1)
        if name in _TEXTS and argument is not None:
            return self._chars(argument, depth + 1)
        return Chars.unknown(ast.unparse(node), *self._span(node))

    def _filled(self, template: ast.expr, values: Sequence[ast.expr], named: dict[str, ast.expr], depth: int) -> Chars:
        """A template of `format` or `%` with its values."""
        chars, result, at = self._chars(template, depth + 1), Chars(), 0
        positions = count()
        for hole in _FIELD.finditer(chars.text):
            result.append(chars.text[at : hole.start()], chars.starts[at : hole.start()], chars.ends[at : hole.start()])
            at = hole.end()
            index = int(hole[1]) if (hole[1] or "").isdecimal() else next(positions) if not hole[1] else len(values)
            value = named.get(hole[1] or "") or (values[index] if index < len(values) else None)
            result.extend(
                self._chars(value, depth + 1) if value is not None else Chars.unknown(hole[0], chars.starts[at - 1], chars.ends[at - 1])
            )
        result.append(chars.text[at:], chars.starts[at:], chars.ends[at:])
        result.sure = result.sure and chars.sure
        return result

    def _literal(self, start: int, end: int, depth: int) -> Chars:
        """String literals side by side, each with its escapes and, of an f-string, its values."""
        chars, at = Chars(), start
        while at < end:
            blank = _BLANK.match(self.text, at)
            opening = _OPENING.match(self.text, blank.end() if blank else at)
            if opening is None or opening.start() >= end:
                break
            prefix, quote = opening[1].lower(), opening[2]
            at = opening.end()
            while at < end and not self.text.startswith(quote, at):
                at = self._literal_piece(chars, at, end, prefix, depth)
            at += len(quote)
        return chars

    def _literal_piece(self, chars: Chars, at: int, end: int, prefix: str, depth: int) -> int:
        """Read one character, escape or value of a literal; the offset behind it."""
        text, pair = self.text, self.text[at : at + 2]
        if pair[:1] == "\\" and "r" not in prefix:
            if pair[1:] != "\n":
                chars.add(_ESCAPES.get(pair[1:], pair), at, at + 2)
            return at + 2
        if "f" in prefix and pair in ("{{", "}}"):
            chars.add(pair[0], at, at + 2)
            return at + 2
        if "f" in prefix and pair[:1] == "{":
            stop = text.find("}", at, end)
            stop = end - 1 if stop < 0 else stop
            chars.extend(self._value(text[at + 1 : stop], at, stop + 1, depth))
            return stop + 1
        stop = next((index for index in range(at, end) if text[index] in "\\{}'\""), end)
        stop = max(stop, at + 1)
        chars.literal(text[at:stop], at)
        return stop

    def _value(self, written: str, start: int, end: int, depth: int) -> Chars:
        """The value in the braces of an f-string: a name that stands for a literal, as itself or as text."""
        name = re.fullmatch(r"\s*(?:(?:str|int)\(\s*)?([A-Za-z_][\w.]*)(\s*\))?\s*(?::\w*)?", written[:200])
        if name is None:
            return self._computed(_INTERPRETERS.get(written.strip(), written), start, end)
        node = ast.parse(name[1], mode="eval").body
        value = self._names.resolve(node)
        if value.node is node:
            return self._computed(_INTERPRETERS.get(written.strip(), written), start, end)
        chars = self._chars(value.node, depth + 1)
        return Chars(chars.text, chars.starts, chars.ends, chars.sure and not value.option)


def starts_any(words: Sequence[Word], text: str) -> bool:
    """Whether words without an option by name start a known program, such as `["llamafactory-cli", "train", "lr=1e-5"]`."""
    return any(map(starts_program, words_launches(words, {}, text)))


def _name_of(node: ast.AST) -> str:
    """The name whose list a statement makes or extends; empty: none."""
    if isinstance(node, ast.Assign):
        return node.targets[0].id if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) else ""
    if isinstance(node, ast.AugAssign):
        return node.target.id if isinstance(node.target, ast.Name) and isinstance(node.op, ast.Add) else ""
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("append", "extend"):
        return call.func.value.id if isinstance(call.func.value, ast.Name) else ""
    return ""


def _is_text(node: ast.expr | None) -> bool:
    """Whether an expression is a text by its form: a literal, a formatted one, several joined."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.Call):
        return callee_name(node.func) in ("format", *_SAME_TEXT) or (callee_name(node.func) == "join" and bool(node.args))
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.BinOp) and (_is_text(node.left) or _is_text(node.right)))
