"""A Makefile's recipes as texts for a shell: variables of make expanded, each character with its offset. Nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from diagnose.adapters.shell.shell_text import MAX_EXPANDED, Chars, Word
from diagnose.parse.text.lazy_re import lazy_compile

_RULE = lazy_compile(r"^(?![ \t#])[^\n:=#]{1,300}::?(?!=)[^\n=]{0,300}\n(?:[ \t]*\n|#[^\n]*\n){0,8}\t[^\n]*\S", re.MULTILINE)
_VARIABLE = re.compile(
    r"(?:override |(export )) *([A-Za-z_][\w.-]*)[ \t]*(?:[?:+!]|::)?=[ \t]*|([A-Za-z_][\w.-]*)[ \t]*(?:[?:+!]|::)?=[ \t]*"
)
_REFERENCE = re.compile(r"\$(?:\(([\w.-]{1,80})\)|\{([\w.-]{1,80})\}|(\$)|\([^()\n]{0,300}\)|\{[^{}\n]{0,300}\}|.)")
_ONE_SHELL = lazy_compile(r"^\.ONESHELL[ \t]*:", re.MULTILINE)
_MAX_DEPTH = 8


def is_makefile(text: str) -> bool:
    """Whether a rule with a recipe, whose lines begin with a tab, stands in the text."""
    return "\n\t" in text and _RULE.search(text) is not None


class MakefileReader:
    """Reads variables first, then the recipes, since make expands a recipe when it runs."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.env: dict[str, Word] = {}
        self._variables: dict[str, tuple[int, int]] = {}
        self._recipes: list[list[tuple[int, int]]] = []
        self._budget = MAX_EXPANDED
        self._read_lines()

    def recipes(self) -> Iterator[Chars]:
        """The text that each shell gets: a line of a recipe, as far as backslashes continue it, or all of its lines (`.ONESHELL`)."""
        whole = _ONE_SHELL.search(self.text) is not None
        for recipe in self._recipes if whole else ([line] for lines in self._recipes for line in lines):
            chars = Chars()
            for start, end in recipe:
                self._expand(chars, start, end, 0)
            yield chars

    def _read_lines(self) -> None:
        at, in_recipe = 0, False
        while at < len(self.text):
            end = self._logical_end(at)
            if self.text[at] == "\t":
                start = at + 1
                while start < end and self.text[start] in "@-+ \t":
                    start += 1
                if not in_recipe:
                    self._recipes.append([])
                self._recipes[-1].append((start, min(end + 1, len(self.text))))
                in_recipe = True
            elif variable := _VARIABLE.match(self.text, at, end):
                comment = self.text.find(" #", variable.end(), end)
                stop = comment if comment >= 0 else end
                stop = variable.end() + len(self.text[variable.end() : stop].rstrip())
                self._variables[variable[2] or variable[3]] = (variable.end(), stop)
                if variable[1]:
                    self.env[variable[2]] = Word(self.text[variable.end() : stop], variable.end(), stop)
            elif self.text[at:end].strip() and self.text[at] != "#":
                in_recipe = False
            at = end + 1

    def _logical_end(self, at: int) -> int:
        """Where a line ends that backslashes may continue."""
        while True:
            end = self.text.find("\n", at)
            if end < 0:
                return len(self.text)
            if not self.text.startswith("\\", end - 1):
                return end
            at = end + 1

    def _expand(self, chars: Chars, start: int, end: int, depth: int) -> None:
        """Append a stretch of the file with its references expanded."""
        at = start
        for reference in _REFERENCE.finditer(self.text, start, end):
            chars.literal(self.text[at : reference.start()], at)
            at = reference.end()
            name = reference[1] or reference[2]
            self._budget -= 1 + len(chars.text) // 1000
            if reference[3]:
                chars.add("$", reference.start(), reference.end())
            elif name in self._variables and depth < _MAX_DEPTH and self._budget > 0:
                self._expand(chars, *self._variables[name], depth + 1)
            else:  # a function of make, or a variable that its caller sets: unknown to the shell's reader as well
                chars.add(f"${name or 'unknown'}", reference.start(), reference.end())
        chars.literal(self.text[at:end], at)
