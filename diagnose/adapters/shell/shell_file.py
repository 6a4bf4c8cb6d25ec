"""A shell script as bash reads it: simple commands with their words, environment and offsets. Nothing is run."""

from __future__ import annotations

import re

from diagnose import rule_files
from diagnose.adapters.shell import sbatch
from diagnose.adapters.shell.first_word import starts_program
from diagnose.adapters.shell.shell_blocks import BlockReader, State, merge_states
from diagnose.adapters.shell.shell_text import (
    MAX_WORDS,
    PLACEHOLDER,
    Chars,
    Command,
    Definition,
    PendingHeredoc,
    Word,
    WrittenFile,
    dialect_of,
    unify_line_ends,
)

_ASSIGN = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_POWERSHELL_ASSIGN = re.compile(r"\$(?:env:)?([A-Za-z_]\w*)[ \t]*(\+?)=[ \t]*", re.IGNORECASE)
_HEREDOC = re.compile(r"<<(-?)\s*(['\"]?)([\w.-]+)\2")
_REDIRECT = re.compile(rf"\d*(?:&>>?|>>|>\||>&|<>|<<<|<&|>|(?!{PLACEHOLDER})<)")
_FUNCTION = re.compile(r"(?:function[ \t]+([\w:.-]+)[ \t]*(?:\(\s*\))?|([\w:.-]+)[ \t]*\(\s*\))\s*\{(?=\s)")
_CMD_ASSIGN = re.compile(r"\"?([A-Za-z_]\w*)()=([^\n\"]*)\"?")
_DECLARE = frozenset({"export", "declare", "local", "readonly", "typeset"})
_PRINTING = frozenset({"echo", "printf", ":"})
_TESTS = frozenset({"[", "[[", "test"})
#: What a called function has of its own; its caller's comes back when it ends.
_CALL_STATE = ("pos", "arguments", "branches", "blocks", "_words", "_assignments", "_heredocs", "_targets", "_guard")
_MAX_CALL_DEPTH = 8


def _is_used(word: Word) -> bool:
    """Whether a script uses the variable that it assigns this word to."""
    return word.chars is not None and word.chars.definition is not None and word.chars.definition.uses > 0


def _is_command(text: str) -> bool:
    """Whether the value of a variable is a command with arguments, perhaps behind variables (`HF_HOME=/x python train.py -v`)."""
    words = re.sub(r"^(?:\w+=\S{1,80}\s+|uv run\s+){0,4}", "", text.strip()).split(None, 3)
    return len(words) > 2 and starts_program(words[0])


class ShellReader(BlockReader):
    """Reads a script from top to bottom, every arm of each branch."""

    def __init__(self, text: str) -> None:
        dialect = dialect_of(text)
        super().__init__(unify_line_ends(text, dialect), dialect)
        self.commands: list[Command] = []
        self.files: list[WrittenFile] = []
        self._exported: dict[str, Word] = {}
        self._assigned_words: dict[str, Word] = {}
        self._words: list[Word] = []
        self._assignments: dict[str, Word] = {}
        self._command_start = 0
        self._heredocs: list[PendingHeredoc] = []
        self._targets: list[str] = []
        self._word_count = 0
        self._is_continued = False
        self._guard: State | None = None
        self._called_functions: set[str] = set()
        self._call_depth = 0

    def read(self) -> list[Command]:
        """Every simple command in the order written; functions where they are called, those that nothing calls last, and behind them the
        commands in variables that this script only hands on (`COMMAND="python train.py ..." sbatch ray.sub`)."""
        for name, word in sbatch.slurm_variables(self.text).items():
            self.variables[name] = word
        self._read_until(len(self.text))
        for name in [name for name in self.functions if name not in self._called_functions]:
            self._call_function(name, None)
        self.commands += [
            Command((Word("bash", word.start, word.start), Word("-c", word.start, word.start), word), {}, word.start)
            for name, word in self._assigned_words.items()
            if _is_command(word.text) and not re.search(rf"\$\{{?{name}\b", self.text)
        ]
        return [command for command in self.commands if command.words or not any(map(_is_used, command.env.values()))]

    # -- tokens

    def _read_until(self, limit: int) -> None:
        text = self.text
        while self.pos < limit and self._word_count < MAX_WORDS:
            char = text[self.pos]
            if char == "\n":
                self.pos += 1
                self._end_command()
                self._read_heredocs()
            elif char in " \t":
                self.pos += 1
            elif self.is_continued():
                self.pos += 2
                self._is_continued = True
            elif char == "#" or (self.dialect == "cmd" and re.compile(r"(?:rem\b|::)", re.IGNORECASE).match(text, self.pos)):
                self.skip_line()
            elif not self._words and not self._assignments and self._read_construct():
                continue
            elif heredoc := _HEREDOC.match(text, self.pos):
                self._start_heredoc(heredoc)
            elif redirect := _REDIRECT.match(text, self.pos):
                self._read_redirect(redirect)
            elif char in ";&|()":
                self._read_separator()
            else:
                self._read_argument()
        self._end_command()

    def _start_heredoc(self, heredoc: re.Match[str]) -> None:
        if self.text.startswith("<<<", self.pos):
            self.pos += 3
            return
        self._heredocs.append(PendingHeredoc(heredoc[3], bool(heredoc[1]), bool(heredoc[2]), self._words, self._targets))
        self.pos = heredoc.end()

    def _read_redirect(self, redirect: re.Match[str]) -> None:
        self.pos = redirect.end()
        self.skip_blanks()
        target = self.read_words()
        if redirect[0].endswith((">", ">|")) and not redirect[0].startswith(("2", "&")) and target:
            name = target[0].text if target[0].sure else target[0].text.rpartition("/")[2]  # in a folder that only the shell knows
            if target[0].sure or (name and "$" not in name and name != target[0].text):
                self._targets.append(name)

    def _read_separator(self) -> None:
        operator = self.text[self.pos : self.pos + 2]
        if operator in (";;", ";&") and self.blocks and self.blocks[-1].kind == "case":
            self.pos += 2
            self._end_command()
            self.next_arm()
            self.blocks[-1].expects_pattern = True
            return
        self.pos += 2 if operator in ("&&", "||") else 1
        self._end_command(operator if operator in ("&&", "||") else "")

    def _read_construct(self) -> bool:
        """Whether something other than a command begins here: a test, a function, a keyword; moves behind it."""
        text = self.text
        if text.startswith("[[", self.pos):
            stop = text.find("]]", self.pos, self.pos + 2000)
            stop = self.pos + 2 if stop < 0 else stop + 2
            self.note_test(text[self.pos : stop])
            self._words, self.pos = [Word("[[", self.pos, stop)], stop
            return True
        function = _FUNCTION.match(text, self.pos) if not (self.blocks and self.blocks[-1].expects_pattern) else None
        if function is not None:
            self.define_function(function)
            return True
        if self.dialect == "powershell" and (assign := _POWERSHELL_ASSIGN.match(text, self.pos)):
            self._command_start = self.pos
            self._assign(assign[1], bool(assign[2]), assign.end(), exported="env:" in assign[0].lower())
            return True
        return self.read_keyword()

    def _call_function(self, name: str, arguments: list[Word] | None) -> None:
        """Read a body with its arguments. None: nothing calls it here, so whether it runs is unknown."""
        if self._call_depth >= _MAX_CALL_DEPTH:
            return
        start, end = self.functions[name]
        self.spend(end - start)
        self._called_functions.add(name)
        saved = {name: getattr(self, name) for name in _CALL_STATE}
        self.branch_count += 1
        self.pos, self.arguments, self._call_depth = start, arguments, self._call_depth + 1
        self.blocks, self._words, self._assignments, self._heredocs, self._targets, self._guard = [], [], {}, [], [], None
        caller_branches = self.branches
        self.branches = ()
        count = len(self.commands)
        self._read_until(end)
        call_branches = caller_branches if arguments is not None else ((-1, len(self._called_functions)),)
        for index in range(count, len(self.commands)):
            command = self.commands[index]
            self.commands[index] = Command(command.words, command.env, command.start, (*call_branches, *command.branches))
        self.__dict__.update(saved)
        self._call_depth -= 1

    # -- words and assignments

    def _read_argument(self) -> None:
        if not self._words:
            self._command_start = self.pos if not self._assignments else self._command_start
        head = self._words[0].text if self._words else ""
        if self.dialect == "cmd" and head.lower() in ("set", "@set") and (assign := _CMD_ASSIGN.match(self.text, self.pos)):
            self._assign_in_cmd(assign)
            return
        assign = _ASSIGN.match(self.text, self.pos)
        if assign and (not self._words or head in _DECLARE):
            self._assign(assign[1], bool(assign[2]), assign.end())
            return
        for word in self.read_words():
            self._word_count += 1
            self._words.append(word)

    def _assign_in_cmd(self, assign: re.Match[str]) -> None:
        value = assign[3].rstrip()
        chars = Chars()
        chars.literal(value, assign.start(3))
        chars.definition = Definition(assign.start(3), assign.start(3) + len(value))
        self.pos = assign.end()
        word = Word(value, assign.start(3), assign.start(3) + len(value), True, chars)
        self._set_variable(assign[1], chars, word)
        self._exported[assign[1]] = word

    def _assign(self, name: str, append: bool, value_pos: int, *, exported: bool = False) -> None:
        start = self.pos
        self.pos = value_pos
        if self.text.startswith(("(", "@("), value_pos):
            self.pos += 1 + (self.text[value_pos] == "@")
            items = self.read_array()
            previous = self.variables.get(name)
            items = [*previous, *items] if append and isinstance(previous, list) else items
            self.variables[name] = items
            self.spend(len(items))
            return
        value = self.read_value()
        previous = self.variables.get(name)
        if append and isinstance(previous, Chars):
            joined = Chars(sure=previous.sure)
            joined.extend(previous)
            joined.extend(value)
            value = joined
        word = Word(value.text, value_pos, self.pos, value.sure, value, tuple(value.definitions))
        self._set_variable(name, value, word)
        self._assignments[name] = word
        if exported or name in self._exported or (self._words and self._words[0].text in ("export", "declare")):
            self._exported[name] = word
        if not self._words and len(self._assignments) == 1:
            self._command_start = start

    def _set_variable(self, name: str, value: Chars, word: Word) -> None:
        self.variables[name] = value
        self._assigned_words[name] = word

    def _end_command(self, operator: str = "") -> None:
        """A command ends: keep it, or, where it only assigned, its assignments."""
        words, assignments, targets = self._words, self._assignments, self._targets
        self._words, self._assignments, self._targets = [], {}, []
        guard, self._guard = self._guard, None
        is_continued, self._is_continued = self._is_continued, False
        if not words and not assignments:
            self._guard = guard if not operator else None
            return
        if words and words[0].text in _TESTS:
            self.note_test(self.text[words[0].start : self.pos])
            self._guard = dict(self.variables) if operator and not guard else guard
            return
        if is_continued and assignments and not "".join(word.text for word in words).strip() and not operator:
            self.commands.append(Command((), assignments, self._command_start, self._current_branches()))
            return
        self._finish_command(words, assignments)
        if words and words[0].text == "echo" and targets and len(words) > 1 and words[1].chars is not None:
            self.files.append(WrittenFile(targets[0], words[1].chars, words[1].start, words[1].end))
        if guard is not None:
            self.variables = merge_states([guard, self.variables], self.tested_names)

    def _finish_command(self, words: list[Word], assignments: dict[str, Word]) -> None:
        head = words[0].text if words else ""
        if not words or head in _DECLARE:
            if head == "export":
                names = [word.text for word in words[1:] if word.text in self.variables]
                self._exported |= {name: word for name in names if (word := self._exported_word(name)) is not None}
            if head == "export" and assignments:
                self.commands.append(Command(tuple(words[:1]), assignments, self._command_start, self._current_branches()))
            return
        if head in _PRINTING:
            for word in words[1:]:
                for _, _, definition in word.definitions:
                    definition.uses -= 1  # what is printed may change with an edit
        if head == ":":
            return  # `: "${NAME:=value}"` assigns and runs nothing
        if head == "unset":
            for word in words[1:]:
                self.variables.pop(word.text, None)
                self._exported.pop(word.text, None)
            return
        if head == "read":
            self.variables |= {word.text: Chars.unknown(word.text) for word in words[1:] if word.text.isidentifier()}
        if head in self.functions and self.text[self.pos - 1 : self.pos] != "(":
            self._call_function(head, words[1:])
            return
        self.spend(8 * len(self._exported))
        env = {name: word for name, word in self._exported.items() if word.text and name in self.variables}
        self.commands.append(Command(tuple(words), {**env, **assignments}, self._command_start, self._current_branches()))

    def _exported_word(self, name: str) -> Word | None:
        """A variable's value as a word, as `export NAME` hands it on."""
        value = self.variables.get(name)
        if not isinstance(value, Chars) or not value.text:
            return None
        word = self._assigned_words.get(name)
        if word is not None and word.chars is value:
            return word
        return Word(value.text, value.starts[0] if value.starts else 0, value.ends[-1] if value.ends else 0, value.sure)

    def _current_branches(self) -> tuple[tuple[int, int], ...]:
        return tuple(branch for branch in self.branches if branch[0])

    # -- here-documents

    def _read_heredocs(self) -> None:
        """The texts of the here-documents announced on the line just ended."""
        for heredoc in self._heredocs:
            start = self.pos
            while self.pos < len(self.text):
                stop = self.text.find("\n", self.pos)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.pos : stop]
                if (line.lstrip("\t") if heredoc.strips_tabs else line).rstrip() == heredoc.delimiter:
                    break
                self.pos = stop + 1
            end = min(self.pos, len(self.text))
            self._apply_heredoc(heredoc, start, end)
            self.skip_line()
            self.pos = min(self.pos + 1, len(self.text))
        self._heredocs = []

    def _apply_heredoc(self, heredoc: PendingHeredoc, start: int, end: int) -> None:
        """`read -d '' NAME` fills a variable, `cat > FILE` and `tee FILE` write a file, which may be a script; `qsub <<EOF` and
        `ssh host bash <<EOF` run one. Other here-documents are skipped."""
        words = [word.text for word in heredoc.words]
        if words[:1] == ["read"]:
            self.variables[words[-1]] = self.expand(start, end)
            return
        name = heredoc.targets[-1] if heredoc.targets else words[1] if words[:1] == ["tee"] and len(words) > 1 else ""
        programs = rule_files.table("programs")
        runs = name.endswith(tuple(programs["script_endings"])) or (not name and not set(words).isdisjoint(programs["fed"]))
        if not name and not runs:
            return
        if heredoc.literal:
            chars = Chars()
            chars.literal(self.text[start:end], start)
        else:
            self.spend(end - start)
            chars = self.expand(start, end)
        if runs and chars.text:
            script = Word(chars.text, start, end, chars.sure, chars)
            self.commands.append(Command((Word("bash", start, start), Word("-c", start, start), script), dict(self._exported), start))
        if name:
            self.files.append(WrittenFile(name, chars, start, end))
