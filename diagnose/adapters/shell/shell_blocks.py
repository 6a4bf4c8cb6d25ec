"""Branches, loops and functions of a shell script. Every arm is read; what the arms do not agree on is unknown afterwards."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace

from diagnose.adapters.shell.shell_names import VariableValue
from diagnose.adapters.shell.shell_text import MAX_WORDS, Chars, Word
from diagnose.adapters.shell.shell_words import WordReader

_ARGUMENT = re.compile(r"\$\{?[1-9@*]")
_PATTERN = re.compile(r"\s*\(?[^)\n;]{0,200}\)")
_TEST_UNSET = re.compile(r"(?:-z\s+|!\s+-n\s+)\"?\$\{?([A-Za-z_]\w*)")
_TEST_SET = re.compile(r"-n\s+\"?\$\{?([A-Za-z_]\w*)")
_BRACE = re.compile(r"(?:^|[;&|\n{])[ \t]*(?:\w+[ \t]*\(\s*\)[ \t]*)?([{}])(?=[\s;&|)]|$)")
_KEYWORD = re.compile(r"@?(?:[a-z]+|[{}!])(?=[\s;&|()]|$)|!(?=\w)", re.IGNORECASE)  # !python: a shell command in a notebook
_KEYWORDS = frozenset({"!", "time", "do", "in", "then", "function", "{", "}"})
_OPENING = frozenset({"if", "while", "until", "for", "select", "case"})

#: What the variables hold at one point of the script.
State = dict[str, VariableValue]


@dataclass(slots=True)
class Block:
    """An open branch or loop: the state before it, and after each of its finished arms."""

    kind: str  # if, case, loop
    number: int
    entry_state: State = field(default_factory=dict)
    arms: list[State] = field(default_factory=list)
    arm: int = 0
    exhaustive: bool = False  # has an `else` or a `*)` arm
    expects_pattern: bool = False  # a pattern of `case` comes next


class BlockReader(WordReader):
    """Keeps the open branches and loops, and which arms the position is in."""

    def __init__(self, text: str, dialect: str) -> None:
        super().__init__(text, dialect)
        self.blocks: list[Block] = []
        self.branches: tuple[tuple[int, int], ...] = ()
        self.branch_count = 0
        self.tested_names: set[str] = set()
        self.functions: dict[str, tuple[int, int]] = {}

    def read_keyword(self) -> bool:
        """Whether a keyword, or a pattern of `case`, stands at the start of the command; moves behind it."""
        block = self.blocks[-1] if self.blocks else None
        if block is not None and block.expects_pattern:
            return self._read_case_pattern(block)
        if self.text.startswith("((", self.pos):
            stop = self.text.find("))", self.pos)
            self.pos = len(self.text) if stop < 0 else stop + 2
            return True
        word = _KEYWORD.match(self.text, self.pos)
        return word is not None and self._apply_keyword(word[0], word.end())

    def next_arm(self) -> None:
        """End one arm and begin the next in the state before the block."""
        block = self.blocks[-1]
        self.spend(len(self.variables))
        block.arms.append(self.variables)
        self.variables = dict(block.entry_state)
        block.arm += 1

    def note_test(self, text: str) -> None:
        """Note the variables that a test asks for: an assignment in an arm gives them their default."""
        self.tested_names |= set(_TEST_UNSET.findall(text)) | set(_TEST_SET.findall(text))

    def _read_case_pattern(self, block: Block) -> bool:
        """Whether a pattern of `case`, or its end, stands here; moves behind it."""
        if re.compile(r"\s*esac\b").match(self.text, self.pos):
            block.expects_pattern = False
            self._close_block("case", self.text.index("esac", self.pos) + 4)
            return True
        pattern = _PATTERN.match(self.text, self.pos)
        block.expects_pattern = False
        if pattern is None:
            return False
        self.pos = pattern.end()
        block.exhaustive = block.exhaustive or pattern[0].strip() in ("*)", "(*)")
        self.branches = (*self.branches[: len(self.blocks) - 1], (block.number, block.arm))
        return True

    def _apply_keyword(self, word: str, end: int) -> bool:
        open_kind = self.blocks[-1].kind if self.blocks else ""
        if word in _OPENING:
            self._open_block(word, end)
        elif word == "then" and open_kind == "if":
            self.pos = end
            self.branches = (*self.branches[: len(self.blocks) - 1], (self.blocks[-1].number, self.blocks[-1].arm))
        elif word in ("else", "elif") and open_kind == "if":
            self.pos = end
            self.next_arm()
            self.blocks[-1].exhaustive = word == "else"
            self.branches = (*self.branches[: len(self.blocks) - 1], (self.blocks[-1].number, self.blocks[-1].arm))
        elif word in ("fi", "done", "esac") and open_kind == {"fi": "if", "done": "loop", "esac": "case"}[word]:
            self._close_block(open_kind, end)
        elif word in _KEYWORDS:
            self.pos = end
        else:
            return False
        return True

    def _open_block(self, keyword: str, end: int) -> None:
        self.branch_count += 1
        self.spend(len(self.variables))
        kind = "loop" if keyword in ("while", "until", "for", "select") else keyword
        block = Block(kind, self.branch_count, dict(self.variables))
        self.pos = end
        if keyword in ("for", "select"):
            self._read_loop_head()
        elif keyword == "case":
            head = re.compile(r"[^\n;]{0,300}?\bin\b").match(self.text, self.pos)
            self.pos = head.end() if head else self.pos
            block.expects_pattern = head is not None
        self.blocks.append(block)
        self.branches = (*self.branches, (block.number, 0)) if kind == "case" else (*self.branches, (0, 0))

    def _read_loop_head(self) -> None:
        """`for X in ...`: with several items the value of X is unknown."""
        head = re.compile(r"[ \t]*([A-Za-z_]\w*)(?:\s+in\b)?").match(self.text, self.pos)
        if head is None:
            return
        self.pos = head.end()
        items: list[Word] = []
        while self.pos < len(self.text) and self.text[self.pos] not in "\n;" and len(items) < MAX_WORDS:
            start = self.pos
            self.skip_blanks()
            if self.text.startswith("#", self.pos):  # a comment
                end = self.text.find("\n", self.pos)
                self.pos = end if end >= 0 else len(self.text)
            if self.pos < len(self.text) and self.text[self.pos] not in "\n;":
                items += self.read_words()
            self.pos += self.pos == start
        value = items[0].chars if len(items) == 1 and items[0].sure else None
        self.variables[head[1]] = value if value is not None else Chars.unknown(head[1])

    def _close_block(self, kind: str, end: int) -> None:
        block = self.blocks.pop()
        self.branches = self.branches[: len(self.blocks)]
        self.pos = end
        if kind != "loop":
            states = [*block.arms, self.variables]
            if kind == "case" and self.variables == block.entry_state:  # nothing follows the last `;;`
                states = block.arms or states
            if not block.exhaustive:
                states = [block.entry_state, *states]
            self.spend(sum(map(len, states)))
            self.variables = merge_states(states, self.tested_names)

    def define_function(self, head: re.Match[str]) -> None:
        """Note where the body stands and move behind it; it is read where it is called."""
        self.pos = head.end()
        start = self.pos
        end = self._function_end()
        self.spend(end - start)
        self.functions[head[1] or head[2]] = (start, end)
        self.pos = min(end + 1, len(self.text))

    def _function_end(self) -> int:
        """The offset of the brace that closes a body: the first at the start of a command that closes no other."""
        level = 0
        for match in _BRACE.finditer(self.text, self.pos - 1):
            if match.start(1) < self.pos:
                continue
            level += 1 if match[1] == "{" else -1
            if level < 0:
                return match.start(1)
        return len(self.text)


# -- states after a branch


def merge_states(states: Sequence[State], tested: Container[str] = ()) -> State:
    """The state after one of several alternatives.

    `tested` are variables that a test asks for: what an arm assigns to them is their default, also where other arms leave them unset.
    """
    first = states[0]
    result: State = {}
    for name in dict.fromkeys(name for state in states for name in state):
        values = [state.get(name) for state in states]
        same = name in first and all(value is first[name] for value in values)
        result[name] = first[name] if same else _merge_values(name, values, name in tested)
    return result


def _merge_values(name: str, values: Sequence[VariableValue | None], has_test: bool) -> VariableValue:
    """The value on which all alternatives agree, else unknown; None is an alternative that leaves the variable unset."""
    present = [value for value in values if value is not None]
    lists = [value for value in present if isinstance(value, list)]
    if len(lists) == len(present):
        return _merge_arrays(lists, len(lists) < len(values))
    texts = [value for value in present if isinstance(value, Chars)]
    if len(texts) < len(present):
        return Chars.unknown(name)
    known = [value for value in texts if not _ARGUMENT.match(value.text) or value.sure]  # an unknown argument says nothing
    everywhere = len(present) == len(values) or has_test
    if known and everywhere and all(value.sure and value.text == known[0].text for value in known):
        same = all(value is known[0] for value in known)
        return known[0] if same else Chars(known[0].text, known[0].starts, known[0].ends)
    return Chars.unknown(name)


def _merge_arrays(lists: Sequence[list[Word]], may_be_unset: bool) -> list[Word]:
    """The items of all alternatives; those that some of them lack are unsure."""
    words: dict[int, Word] = {id(word): word for items in lists for word in items}
    certain = {key for key in words if not may_be_unset and all(any(id(word) == key for word in items) for items in lists)}
    return [word if key in certain else replace(word, sure=False) for key, word in words.items()]
