"""An LALR(1) parser driven by tables that lark compiled in advance: importing lark costs an eighth of a diagnosis.

What is read, and how, is lark's LALR(1) with its contextual lexer: in every state only the terminals that can follow are looked
for. tests/parse/test_lalr.py holds the two together, on every grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from diagnose.records import NamedTuple

#: Lark's type of the token after the last.
END = "$END"


class Token(NamedTuple):
    """A token: its terminal, its text, the offsets of start and end, and the line of its start (from 1)."""

    type: str
    text: str
    start: int
    end: int
    line: int


class Tree(NamedTuple):
    """A node: the rule's name or alias, and its children, without quoted words and without rules and terminals named `_...`."""

    data: str
    children: list[Node]


Node: TypeAlias = "Token | Tree"


class Unread(Exception):
    """A text that does not match its grammar at offset `at` (at the last token if it ends too early); `column` counts from 1."""

    def __init__(self, text: str, at: int) -> None:
        super().__init__(f"does not fit at {at}")
        self.at, self.column = at, at - text.rfind("\n", 0, at)


class Parser:
    """Parses texts by the tables that `compiled` made of a grammar."""

    def __init__(self, tables: dict[str, Any]) -> None:
        self._start, self._end = tables["start"], tables["end"]
        self._states: list[dict[str, int]] = tables["states"]
        self._rules: list[tuple[str, str, int, list[tuple[int, bool]], bool]] = tables["rules"]
        self._ignored = frozenset(tables["ignored"])
        self._pattern_of_state: list[int] = tables["possible"]
        self._terminals: list[str] = tables["terminals"]
        self._patterns: dict[int, re.Pattern[str]] = {}
        self._pattern_by_state: dict[int, re.Pattern[str]] = {}

    def parse(self, text: str) -> Node:
        """Parse a whole text. Raises Unread if it does not match the grammar."""
        states, values, table = [self._start], list[Node](), self._states
        for token in self._tokens(text, states):
            while (action := table[states[-1]].get(token.type, 0)) < 0:
                self._reduce(-action - 1, states, values)
                if token.type == END and states[-1] == self._end:
                    return values[-1]
            if not action:
                break
            states.append(action - 1)
            values.append(token)
        raise Unread(text, token.start)

    def _tokens(self, text: str, states: list[int]) -> Iterator[Token]:
        """Yield the tokens; which terminals are matched depends on the parser's state at that moment. Raises Unread."""
        position, line, last_position = 0, 1, 0
        patterns, ignored = self._pattern_by_state, self._ignored
        while position < len(text):
            match = (patterns.get(states[-1]) or self._state_pattern(states[-1])).match(text, position)
            if match is None:
                raise Unread(text, position)
            terminal, text_read = str(match.lastgroup), match[0]
            if terminal not in ignored:
                last_position = position
                yield Token(terminal, text_read, position, match.end(), line)
            line += text_read.count("\n")
            position = match.end()
        yield Token(END, "", last_position, last_position, line)

    def _state_pattern(self, state: int) -> re.Pattern[str]:
        """The pattern of the terminals that may follow in a state, a group for each; compiled on first use."""
        number = self._pattern_of_state[state]
        if number not in self._patterns:
            self._patterns[number] = re.compile(self._terminals[number])
        return self._pattern_by_state.setdefault(state, self._patterns[number])

    def _reduce(self, number: int, states: list[int], values: list[Node]) -> None:
        """Replace the nodes that a rule matched by one node."""
        rule, name, size, kept, collapses = self._rules[number]
        first = len(values) - size
        children: list[Node] = []
        for index, is_inlined in kept:
            node = values[first + index]
            if is_inlined and isinstance(node, Tree):
                if children:
                    children += node.children
                else:  # reuse the list, which nothing else refers to: copying it for each item would be quadratic
                    children = node.children
            else:
                children.append(node)
        del values[first:], states[len(states) - size :]
        states.append(self._states[states[-1]][rule] - 1)
        values.append(children[0] if collapses and len(children) == 1 else Tree(name, children))


def compiled(grammar: str) -> dict[str, Any]:
    """Compile a grammar in lark's notation to tables of plain JSON. Raises lark's errors, and ValueError for what `Parser` cannot run.

    `states`: per state a mapping of symbols to the next state (counted from 1) or, negative, to the rule to reduce (from -1);
    `rules`: name, name of its tree, number of symbols, the symbols kept and whether only their children are, whether a single child
    replaces the tree; `terminals`: regular expressions; `possible`: per state the number of its expression in `terminals`.
    """
    import lark

    parser: Any = lark.Lark(grammar, parser="lalr", maybe_placeholders=False)
    table, lexers = parser.parser.parser._parse_table, parser.parser.lexer.lexers  # noqa: SLF001 - no other name for it
    actions = [table.states[state] for state in range(len(table.states))]
    rules = list({arg: None for row in actions for _, arg in row.values() if not isinstance(arg, int)})
    numbers = {rule: -1 - number for number, rule in enumerate(rules)}
    terminals = ["|".join(part.pattern for part in lexers[state].scanner._mres) for state in range(len(actions))]  # noqa: SLF001
    distinct = list(dict.fromkeys(terminals))
    if any(lexer.callback for lexer in lexers.values()):
        raise ValueError("a quoted word also fits a terminal of the same priority: give one of them another")
    return {
        "start": table.start_states["start"],
        "end": table.end_states["start"],
        "states": [{str(name): arg + 1 if isinstance(arg, int) else numbers[arg] for name, (_, arg) in row.items()} for row in actions],
        "rules": [_rule(rule) for rule in rules],
        "ignored": [str(name) for name in parser.ignore_tokens],
        "terminals": distinct,
        "possible": [distinct.index(pattern) for pattern in terminals],
    }


def _rule(rule: Any) -> list[object]:
    kept = [
        (index, not symbol.is_term and symbol.name.startswith("_"))
        for index, symbol in enumerate(rule.expansion)
        if rule.options.keep_all_tokens or not (symbol.is_term and symbol.filter_out)
    ]
    return [str(rule.origin.name), str(rule.alias or rule.origin.name), len(rule.expansion), kept, rule.options.expand1 and not rule.alias]
