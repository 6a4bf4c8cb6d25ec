"""A shell script as bash reads it: commands with their words, environments and places. Nothing is run."""

from __future__ import annotations

import re

from diagnose.adapters.shell import sbatch
from diagnose.adapters.shell.shell_blocks import Blocks
from diagnose.adapters.shell.shell_dialects import dialect_of, unbroken
from diagnose.adapters.shell.shell_flow import State, merged
from diagnose.adapters.shell.shell_text import BLANKED, MAX_WORDS, Announced, Chars, Command, Home, Word, Written

__all__ = ["Command", "Reader", "Word", "Written", "dialect_of"]

_ASSIGN = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_POWER_ASSIGN = re.compile(r"\$(?:env:)?([A-Za-z_]\w*)[ \t]*(\+?)=[ \t]*", re.IGNORECASE)
_HEREDOC = re.compile(r"<<(-?)\s*(['\"]?)([\w.-]+)\2")
_REDIRECT = re.compile(rf"\d*(?:&>>?|>>|>\||>&|<>|<<<|<&|>|(?!{BLANKED})<)")
_FUNCTION = re.compile(r"(?:function[ \t]+([\w:.-]+)[ \t]*(?:\(\s*\))?|([\w:.-]+)[ \t]*\(\s*\))\s*\{(?=\s)")
_SET_BY_CMD = re.compile(r"\"?([A-Za-z_]\w*)()=([^\n\"]*)\"?")
_DECLARE = frozenset({"export", "declare", "local", "readonly", "typeset"})
_PRINTING = frozenset({"echo", "printf"})
_TESTS = frozenset({"[", "[[", "test"})
_DEEPEST = 8


class Reader(Blocks):
    """Reads a script from top to bottom. Every arm of a branch is read; what they do not agree on is unknown afterwards."""

    def __init__(self, text: str) -> None:
        dialect = dialect_of(text)
        super().__init__(unbroken(text, dialect), dialect)
        self.commands: list[Command] = []
        self.files: list[Written] = []
        self._exported: dict[str, Word] = {}
        self._assigned: dict[str, Word] = {}
        self._words: list[Word] = []
        self._before: dict[str, Word] = {}
        self._start = 0
        self._announced: list[Announced] = []
        self._target: list[str] = []
        self._count = 0
        self._guard: State | None = None
        self._called: set[str] = set()
        self._level = 0

    def read(self) -> list[Command]:
        """Every simple command, in the order written; functions where they are called, those that nothing calls last."""
        for name, word in sbatch.variables(self.text).items():
            self.held[name] = word
        self._run(len(self.text))
        for name in [name for name in self.functions if name not in self._called]:
            self._call(name, None)
        return self.commands

    # -- one token after the other

    def _run(self, limit: int) -> None:
        text = self.text
        while self.at < limit and self._count < MAX_WORDS:
            here = text[self.at]
            if here == "\n":
                self.at += 1
                self._end()
                self._bodies()
            elif here in " \t":
                self.at += 1
            elif self.continues():
                self.at += 2
            elif here == "#" or (self.dialect == "cmd" and re.compile(r"(?:rem\b|::)", re.IGNORECASE).match(text, self.at)):
                self.past_line()
            elif not self._words and not self._before and self._opens():
                continue
            elif heredoc := _HEREDOC.match(text, self.at):
                self._announce(heredoc)
            elif redirect := _REDIRECT.match(text, self.at):
                self._redirect(redirect)
            elif here in ";&|()":
                self._separator()
            else:
                self._argument()
        self._end()

    def _announce(self, heredoc: re.Match[str]) -> None:
        if self.text.startswith("<<<", self.at):
            self.at += 3
            return
        self._announced.append(Announced(heredoc[3], bool(heredoc[1]), bool(heredoc[2]), self._words, self._target))
        self.at = heredoc.end()

    def _redirect(self, redirect: re.Match[str]) -> None:
        self.at = redirect.end()
        self.blanks()
        target = self.word()
        if redirect[0].endswith((">", ">|")) and not redirect[0].startswith(("2", "&")) and target and target[0].sure:
            self._target.append(target[0].text)

    def _separator(self) -> None:
        sign = self.text[self.at : self.at + 2]
        if sign in (";;", ";&") and self.blocks and self.blocks[-1].word == "case":
            self.at += 2
            self._end()
            self.next_arm()
            self.blocks[-1].pattern = True
            return
        self.at += 2 if sign in ("&&", "||") else 1
        self._end(sign if sign in ("&&", "||") else "")

    def _opens(self) -> bool:
        """Something at the start of a command that is none: a test, a function, a keyword; the cursor is moved past it."""
        text = self.text
        if text.startswith("[[", self.at):
            stop = text.find("]]", self.at, self.at + 2000)
            stop = self.at + 2 if stop < 0 else stop + 2
            self.asks(text[self.at : stop])
            self._words, self.at = [Word("[[", self.at, stop)], stop
            return True
        function = _FUNCTION.match(text, self.at) if not (self.blocks and self.blocks[-1].pattern) else None
        if function is not None:
            self.define(function)
            return True
        if self.dialect == "powershell" and (assign := _POWER_ASSIGN.match(text, self.at)):
            self._start = self.at
            self._assign(assign[1], bool(assign[2]), assign.end(), exported="env:" in assign[0].lower())
            return True
        return self.keyword_here()

    def _call(self, name: str, given: list[Word] | None) -> None:
        """Read a body with its arguments. Without: nobody calls it here, so whether it runs is unknown."""
        if self._level >= _DEEPEST:
            return
        start, end = self.functions[name]
        self.spend(end - start)
        self._called.add(name)
        kept = (self.at, self.given, self.inside, self.blocks, self._words, self._before, self._announced, self._target, self._guard)
        self.numbers += 1
        self.at, self.given, self._level = start, given, self._level + 1
        self.blocks, self._words, self._before, self._announced, self._target, self._guard = [], [], {}, [], [], None
        outer = self.inside
        self.inside = ()
        count = len(self.commands)
        self._run(end)
        extra = outer if given is not None else ((-1, len(self._called)),)
        for index in range(count, len(self.commands)):
            made = self.commands[index]
            self.commands[index] = Command(made.words, made.env, made.start, (*extra, *made.maybe))
        (self.at, self.given, self.inside, self.blocks, self._words, self._before, self._announced, self._target, self._guard) = kept
        self._level -= 1

    # -- words and assignments

    def _argument(self) -> None:
        if not self._words:
            self._start = self.at if not self._before else self._start
        head = self._words[0].text if self._words else ""
        if self.dialect == "cmd" and head.lower() in ("set", "@set") and (assign := _SET_BY_CMD.match(self.text, self.at)):
            self._set_by_cmd(assign)
            return
        assign = _ASSIGN.match(self.text, self.at)
        if assign and (not self._words or head in _DECLARE):
            self._assign(assign[1], bool(assign[2]), assign.end())
            return
        for word in self.word():
            self._count += 1
            self._words.append(word)

    def _set_by_cmd(self, assign: re.Match[str]) -> None:
        value = assign[3].rstrip()
        made = Chars()
        made.literal(value, assign.start(3))
        made.home = Home(assign.start(3), assign.start(3) + len(value))
        self.at = assign.end()
        word = Word(value, assign.start(3), assign.start(3) + len(value), True, made)
        self._hold(assign[1], made, word)
        self._exported[assign[1]] = word

    def _assign(self, name: str, append: bool, at: int, *, exported: bool = False) -> None:
        start = self.at
        self.at = at
        if self.text.startswith(("(", "@("), at):
            self.at += 1 + (self.text[at] == "@")
            items = self.array()
            held = self.held.get(name)
            items = [*held, *items] if append and isinstance(held, list) else items
            self.held[name] = items
            self.spend(len(items))
            return
        value = self.value()
        held = self.held.get(name)
        if append and isinstance(held, Chars):
            joined = Chars(sure=held.sure)
            joined.join(held)
            joined.join(value)
            value = joined
        word = Word(value.text, at, self.at, value.sure, value, tuple(value.homes))
        self._hold(name, value, word)
        self._before[name] = word
        if exported or name in self._exported or (self._words and self._words[0].text in ("export", "declare")):
            self._exported[name] = word
        if not self._words and len(self._before) == 1:
            self._start = start

    def _hold(self, name: str, value: Chars, word: Word) -> None:
        self.held[name] = value
        self._assigned[name] = word

    def _end(self, sign: str = "") -> None:
        """A command ends: keep it, or, where it only assigned, keep the assignments."""
        words, before, target = self._words, self._before, self._target
        self._words, self._before, self._target = [], {}, []
        guard, self._guard = self._guard, None
        if not words and not before:
            self._guard = guard if not sign else None
            return
        if words and words[0].text in _TESTS:
            self.asks(self.text[words[0].start : self.at])
            self._guard = dict(self.held) if sign and not guard else guard
            return
        self._kept(words, before)
        if words and words[0].text == "echo" and target and len(words) > 1 and words[1].chars is not None:
            self.files.append(Written(target[0], words[1].chars, words[1].start, words[1].end))
        if guard is not None:
            self.held = merged([guard, self.held], self.tested)

    def _kept(self, words: list[Word], before: dict[str, Word]) -> None:
        head = words[0].text if words else ""
        if not words or head in _DECLARE:
            if head == "export":
                names = [word.text for word in words[1:] if word.text in self.held]
                self._exported |= {name: word for name in names if (word := self._as_word(name)) is not None}
            if head == "export" and before:
                self._keep(Command(tuple(words[:1]), before, self._start, self._branches()))
            return
        if head in _PRINTING:
            for word in words[1:]:
                for _, _, home in word.homes:
                    home.uses -= 1  # what is printed may change with the value
        if head == "unset":
            for word in words[1:]:
                self.held.pop(word.text, None)
                self._exported.pop(word.text, None)
            return
        if head == "read":
            self.held |= {word.text: Chars.unknown(word.text) for word in words[1:] if word.text.isidentifier()}
        if head in self.functions and self.text[self.at - 1 : self.at] != "(":
            self._call(head, words[1:])
            return
        self.spend(8 * len(self._exported))
        env = {name: word for name, word in self._exported.items() if word.text and name in self.held}
        self._keep(Command(tuple(words), {**env, **before}, self._start, self._branches()))

    def _keep(self, command: Command) -> None:
        self.commands.append(command)

    def _as_word(self, name: str) -> Word | None:
        held = self.held.get(name)
        if not isinstance(held, Chars) or not held.text:
            return None
        word = self._assigned.get(name)
        if word is not None and word.chars is held:
            return word
        return Word(held.text, held.at[0] if held.at else 0, held.to[-1] if held.to else 0, held.sure)

    def _branches(self) -> tuple[tuple[int, int], ...]:
        return tuple(branch for branch in self.inside if branch[0])

    # -- here-documents

    def _bodies(self) -> None:
        """The texts that were announced on the line just ended: one for `read -d '' NAME` fills a variable, one for `cat > FILE` a file."""
        for one in self._announced:
            start = self.at
            while self.at < len(self.text):
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.at : stop]
                if (line.lstrip("\t") if one.tabs else line).rstrip() == one.delimiter:
                    break
                self.at = stop + 1
            end = min(self.at, len(self.text))
            self._body(one, start, end)
            self.past_line()
            self.at = min(self.at + 1, len(self.text))
        self._announced = []

    def _body(self, one: Announced, start: int, end: int) -> None:
        words = [word.text for word in one.words]
        if words[:1] == ["read"]:
            self.held[words[-1]] = self.expanded(start, end)
            return
        name = one.target[-1] if one.target else words[1] if words[:1] == ["tee"] and len(words) > 1 else ""
        if not name:
            return
        if one.literal:
            chars = Chars()
            chars.literal(self.text[start:end], start)
        else:
            self.spend(end - start)
            chars = self.expanded(start, end)
        self.files.append(Written(name, chars, start, end))
