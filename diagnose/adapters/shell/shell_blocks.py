"""Branches, loops and functions of a shell script: every arm is read, what the arms disagree on is unknown afterwards."""

from __future__ import annotations

import re

from diagnose.adapters.shell.shell_flow import State, merged
from diagnose.adapters.shell.shell_text import MAX_WORDS, Chars, Word
from diagnose.adapters.shell.shell_words import Words
from diagnose.record import field, record

_PATTERN = re.compile(r"\s*\(?[^)\n;]{0,200}\)")
_UNSET = re.compile(r"(?:-z\s+|!\s+-n\s+)\"?\$\{?([A-Za-z_]\w*)")
_SET = re.compile(r"-n\s+\"?\$\{?([A-Za-z_]\w*)")
_BRACE = re.compile(r"(?:^|[;&|\n{])[ \t]*(?:\w+[ \t]*\(\s*\)[ \t]*)?([{}])(?=[\s;&|)]|$)")
_WORD = re.compile(r"@?(?:[a-z]+|[{}!])(?=[\s;&|()]|$)|!(?=\w)", re.IGNORECASE)  # !python: a notebook's way to call the shell
_KEYWORDS = frozenset({"!", "time", "do", "in", "then", "function", "{", "}"})
_OPENING = frozenset({"if", "while", "until", "for", "select", "case"})


@record(frozen=False)
class Block:
    """A branch or a loop that is open: what held before it, what its finished arms left."""

    word: str
    number: int
    before: State = field(default_factory=dict)
    arms: list[State] = field(default_factory=list)
    arm: int = 0
    complete: bool = False  # it has an `else`, a `*)`
    pattern: bool = False  # the next is a pattern of `case`


class Blocks(Words):
    """Keeps the branches and loops that are open, and which arms the cursor is in."""

    def __init__(self, text: str, dialect: str) -> None:
        super().__init__(text, dialect)
        self.blocks: list[Block] = []
        self.inside: tuple[tuple[int, int], ...] = ()
        self.numbers = 0
        self.tested: set[str] = set()
        self.functions: dict[str, tuple[int, int]] = {}

    def keyword_here(self) -> bool:
        """A keyword, or a pattern of `case`, at the start of a command; the cursor is moved past it."""
        block = self.blocks[-1] if self.blocks else None
        if block is not None and block.pattern:
            return self._case_pattern(block)
        if self.text.startswith("((", self.at):
            stop = self.text.find("))", self.at)
            self.at = len(self.text) if stop < 0 else stop + 2
            return True
        word = _WORD.match(self.text, self.at)
        return word is not None and self._keyword(word[0], word.end())

    def next_arm(self) -> None:
        """One arm ends and another begins, from what held before."""
        block = self.blocks[-1]
        self.spend(len(self.held))
        block.arms.append(self.held)
        self.held = dict(block.before)
        block.arm += 1

    def asks(self, text: str) -> None:
        """A test whether a variable is set: what follows gives its default."""
        self.tested |= set(_UNSET.findall(text)) | set(_SET.findall(text))

    def _case_pattern(self, block: Block) -> bool:
        """What stands before a bracket in `case`, or its end."""
        if re.compile(r"\s*esac\b").match(self.text, self.at):
            block.pattern = False
            self._close("case", self.text.index("esac", self.at) + 4)
            return True
        pattern = _PATTERN.match(self.text, self.at)
        block.pattern = False
        if pattern is None:
            return False
        self.at = pattern.end()
        block.complete = block.complete or pattern[0].strip() in ("*)", "(*)")
        self.inside = (*self.inside[: len(self.blocks) - 1], (block.number, block.arm))
        return True

    def _keyword(self, word: str, end: int) -> bool:
        last = self.blocks[-1].word if self.blocks else ""
        if word in _OPENING:
            self._open(word, end)
        elif word == "then" and last == "if":
            self.at = end
            self.inside = (*self.inside[: len(self.blocks) - 1], (self.blocks[-1].number, self.blocks[-1].arm))
        elif word in ("else", "elif") and last == "if":
            self.at = end
            self.next_arm()
            self.blocks[-1].complete = word == "else"
            self.inside = (*self.inside[: len(self.blocks) - 1], (self.blocks[-1].number, self.blocks[-1].arm))
        elif word in ("fi", "done", "esac") and last == {"fi": "if", "done": "loop", "esac": "case"}[word]:
            self._close(last, end)
        elif word in _KEYWORDS:
            self.at = end
        else:
            return False
        return True

    def _open(self, word: str, end: int) -> None:
        self.numbers += 1
        self.spend(len(self.held))
        kind = "loop" if word in ("while", "until", "for", "select") else word
        block = Block(kind, self.numbers, dict(self.held))
        self.at = end
        if word in ("for", "select"):
            self._loop()
        elif word == "case":
            found = re.compile(r"[^\n;]{0,300}?\bin\b").match(self.text, self.at)
            self.at = found.end() if found else self.at
            block.pattern = found is not None
        self.blocks.append(block)
        self.inside = (*self.inside, (block.number, 0)) if kind == "case" else (*self.inside, (0, 0))

    def _loop(self) -> None:
        """`for X in ...`: of several words it is unknown which."""
        head = re.compile(r"[ \t]*([A-Za-z_]\w*)(?:\s+in\b)?").match(self.text, self.at)
        if head is None:
            return
        self.at = head.end()
        items: list[Word] = []
        while self.at < len(self.text) and self.text[self.at] not in "\n;" and len(items) < MAX_WORDS:
            before = self.at
            self.blanks()
            if self.at < len(self.text) and self.text[self.at] not in "\n;":
                items += self.word()
            self.at += self.at == before
        one = items[0].chars if len(items) == 1 and items[0].sure else None
        self.held[head[1]] = one if one is not None else Chars.unknown(head[1])

    def _close(self, word: str, end: int) -> None:
        block = self.blocks.pop()
        self.inside = self.inside[: len(self.blocks)]
        self.at = end
        if word != "loop":
            states = [*block.arms, self.held] if block.word == "if" or self.held != block.before else block.arms or [self.held]
            if not block.complete:
                states = [block.before, *states]
            self.spend(sum(map(len, states)))
            self.held = merged(states, self.tested)

    def define(self, head: re.Match[str]) -> None:
        """The body is passed over now and read where it is called."""
        self.at = head.end()
        start = self.at
        end = self._body_end()
        self.spend(end - start)
        self.functions[head[1] or head[2]] = (start, end)
        self.at = min(end + 1, len(self.text))

    def _body_end(self) -> int:
        """Where the brace stands that closes a body: the first at the start of a command that closes no other."""
        level = 0
        for match in _BRACE.finditer(self.text, self.at - 1):
            if match.start(1) < self.at:
                continue
            level += 1 if match[1] == "{" else -1
            if level < 0:
                return match.start(1)
        return len(self.text)
