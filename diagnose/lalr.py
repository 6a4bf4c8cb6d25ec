"""Runs a grammar that was compiled to plain tables: lark compiles them, and to import it costs an eighth of a diagnosis.

What is read, and how, is lark's LALR(1) with its contextual lexer: in every state only the terminals that can follow are looked
for. tests/parse/test_lalr.py holds the two together, on every grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from diagnose.record import NamedTuple

#: The type of what comes after the last token, as lark calls it.
END = "$END"


class Token(NamedTuple):
    """A terminal's name, the text that it read, where that begins and ends, and the line it begins in (from 1)."""

    type: str
    text: str
    start: int
    end: int
    line: int


class Tree(NamedTuple):
    """A rule's name, or its alias, and what it read: nothing of rules and terminals whose names begin with `_`, nor of quoted words."""

    data: str
    children: list[Node]


Node: TypeAlias = "Token | Tree"


class Unread(Exception):
    """The text does not fit its grammar at `at` (of an end that comes too early: at the last token); `column` is from 1."""

    def __init__(self, text: str, at: int) -> None:
        super().__init__(f"does not fit at {at}")
        self.at, self.column = at, at - text.rfind("\n", 0, at)


class Parser:
    """Texts to trees, by the tables that `compiled` made of a grammar."""

    def __init__(self, tables: dict[str, Any]) -> None:
        self._start, self._end = tables["start"], tables["end"]
        self._states: list[dict[str, int]] = tables["states"]
        self._rules: list[tuple[str, str, int, list[tuple[int, bool]], bool]] = tables["rules"]
        self._ignored = frozenset(tables["ignored"])
        self._possible: list[int] = tables["possible"]
        self._terminals: list[str] = tables["terminals"]
        self._compiled: dict[int, re.Pattern[str]] = {}
        self._sought: dict[int, re.Pattern[str]] = {}  # by state

    def parse(self, text: str) -> Node:
        """The tree of the whole text. Raises Unread."""
        states, values, table = [self._start], list[Node](), self._states
        for token in self._tokens(text, states):
            while (to := table[states[-1]].get(token.type, 0)) < 0:
                self._reduce(-to - 1, states, values)
                if token.type == END and states[-1] == self._end:
                    return values[-1]
            if not to:
                break
            states.append(to - 1)
            values.append(token)
        raise Unread(text, token.start)

    def _tokens(self, text: str, states: list[int]) -> Iterator[Token]:
        """The tokens one by one: what is looked for depends on the state that the parser is in by then. Raises Unread."""
        at, line, last = 0, 1, 0
        sought, ignored = self._sought, self._ignored
        while at < len(text):
            found = (sought.get(states[-1]) or self._looked_for(states[-1])).match(text, at)
            if found is None:
                raise Unread(text, at)
            kind, read = str(found.lastgroup), found[0]
            if kind not in ignored:
                last = at
                yield Token(kind, read, at, found.end(), line)
            line += read.count("\n")
            at = found.end()
        yield Token(END, "", last, last, line)

    def _looked_for(self, state: int) -> re.Pattern[str]:
        """The terminals that can stand in a state, as an expression with a group for each, compiled when it is first needed."""
        number = self._possible[state]
        if number not in self._compiled:
            self._compiled[number] = re.compile(self._terminals[number])
        return self._sought.setdefault(state, self._compiled[number])

    def _reduce(self, number: int, states: list[int], values: list[Node]) -> None:
        """What a rule has read becomes one node."""
        rule, name, size, kept, alone = self._rules[number]
        first = len(values) - size
        children: list[Node] = []
        for index, opened in kept:
            node = values[first + index]
            if opened and isinstance(node, Tree):
                if children:
                    children += node.children
                else:  # nobody else holds them, and a list that grows item by item is not copied for each
                    children = node.children
            else:
                children.append(node)
        del values[first:], states[len(states) - size :]
        states.append(self._states[states[-1]][rule] - 1)
        values.append(children[0] if alone and len(children) == 1 else Tree(name, children))


def compiled(grammar: str) -> dict[str, Any]:
    """The tables of a grammar in lark's notation, as plain JSON. Raises lark's errors, and ValueError for what `Parser` cannot run.

    `states`: for each, a symbol to the state after it (counted from 1) or, negative, to the rule that ends there (from -1);
    `rules`: name, what its tree is called, how many symbols it reads, which of them are kept and whether only their children are,
    whether one child stands for the tree; `terminals`: expressions, `possible`: for each state the one of all that can stand there.
    """
    import lark

    made: Any = lark.Lark(grammar, parser="lalr", maybe_placeholders=False)
    table, lexers = made.parser.parser._parse_table, made.parser.lexer.lexers  # noqa: SLF001 - no other name for it
    actions = [table.states[state] for state in range(len(table.states))]
    ended = list({arg: None for row in actions for _, arg in row.values() if not isinstance(arg, int)})
    numbers = {rule: -1 - number for number, rule in enumerate(ended)}
    terminals = ["|".join(part.pattern for part in lexers[state].scanner._mres) for state in range(len(actions))]  # noqa: SLF001
    distinct = list(dict.fromkeys(terminals))
    if any(lexer.callback for lexer in lexers.values()):
        raise ValueError("a quoted word also fits a terminal of the same priority: give one of them another")
    return {
        "start": table.start_states["start"],
        "end": table.end_states["start"],
        "states": [{str(name): arg + 1 if isinstance(arg, int) else numbers[arg] for name, (_, arg) in row.items()} for row in actions],
        "rules": [_rule(rule) for rule in ended],
        "ignored": [str(name) for name in made.ignore_tokens],
        "terminals": distinct,
        "possible": [distinct.index(each) for each in terminals],
    }


def _rule(rule: Any) -> list[Any]:
    kept = [
        (index, not symbol.is_term and symbol.name.startswith("_"))
        for index, symbol in enumerate(rule.expansion)
        if rule.options.keep_all_tokens or not (symbol.is_term and symbol.filter_out)
    ]
    return [str(rule.origin.name), str(rule.alias or rule.origin.name), len(rule.expansion), kept, rule.options.expand1 and not rule.alias]
