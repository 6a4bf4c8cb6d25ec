"""Finds values that a name marks as secrets (`wandb_key: ...`, `--token ...`, `"password": "..."`) in any text: YAML, JSON, TOML, INI,
shell, Python, command lines, headers, queries of addresses, tables, printed settings. Names and harmless values: rules/secret_names.yaml.

Time is linear in the text's length: every look behind a name, before it and at its value is bounded.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

from diagnose import rule_files
from diagnose.records import NamedTuple

#: How much a value has to look like a secret, the least first; what each asks is said in rules/secret_names.yaml.
DEMANDS = ("any", "text", "mixed", "random")

#: Characters of a name before its last word, of a value.
MAX_FRONT, MAX_VALUE = 80, 16_384
#: Names within a longer value that is no secret are not looked at: time would grow with the square of its length.
LONG = 256

#: What opens or closes a text: quotes, also escaped or as HTML writes them; Markdown's bold.
QUOTE = r"(?:\\{0,3}[\"'`]|&quot;|&\#39;)"

#: What stands between a name and its value; the group's name says which form it is.
SEPARATOR = rf"""(?:{QUOTE}|\]|\*\*){{0,4}}+(?:
    [ \t]{{0,40}}+(?P<assign>
        (?::[ \t]?(?:[\w.]{{1,20}}\[)?[A-Za-z_.]{{1,30}}\]?(?:[ \t]?\|[ \t]?None)?[ \t]=[ \t])
        |:=|=>|={{1,3}}|:(?!//|:)|：|\.{{3,}})
  | (?P<value>[ \t]?,?[\s\\n]{{0,40}}+{QUOTE}?(?:value|default){QUOTE}?[ \t]?[:=])
  | (?P<default>[ \t]?,[^\n()]{{0,100}}?\bdefault[ \t]?=)
  | (?P<tag>>)(?=[^<\s])
  | (?<=["'`;])(?P<comma>[ \t]?,)[ \t]{{0,8}}+(?={QUOTE})
  | [ \t]{{1,40}}+(?P<table>[|│┃║])
  | [ \t]{{1,4}}+(?P<verb>(?:is|was)[ \t]?:?)(?=[ \t])
  | (?P<shi>[是为])
  | (?P<blank>[ \t])
)[ \t]{{0,40}}+"""

#: Before the first value: the start of a list or of a block, a scheme of HTTP.
OPENING = re.compile(
    rf"(?:[|>][+-]?\d?[ \t]*\n[ \t]+|\s{{0,40}}\n[ \t]{{0,40}}-[ \t]+|[\[(]\s{{0,40}}"
    rf"|[A-Za-z]\w{{0,20}}\((?=[\"']))?(?:[bBrRuUfF]{{1,2}}(?={QUOTE}))?"
)
SCHEME = re.compile(r"(?:bearer|basic|token|apikey|negotiate|digest|bot)[ \t]+", re.IGNORECASE)
OPEN_QUOTE = re.compile(rf"\\{{0,3}}(?:\"\"\"|''')|{QUOTE}")
#: An unquoted value ends before its line does at another setting behind a comma or an ampersand, and at the next command.
BARE = re.compile(
    r"(?:<(?=[^\n<>]{0,60}>))?(?:[^\s\"'`<>\\,;&|，。；、]|\\(?![\"'`nrt\\])|(?<=\w)[<>](?=[\w!@#$%^&*])"
    r"|[,;&](?![\w.-]{1,60}[\"']?[:=]|amp;|[;&\[({\s]|$)|\|(?!\|))+"
)
NEXT_OF_LIST = re.compile(
    rf"(?:{QUOTE})?[ \t]*(?:,\s{{0,40}}|\n[ \t]{{0,40}}-[ \t]+)"
    rf"(?={QUOTE}?[^\s\"'`\]\[(){{}},:=]{{6,4096}}+(?![ \t]*[:=(]){QUOTE}?[ \t]*[\n,\])])"
)
REST_OF_LINE = re.compile(r"(?:[ \t]+[\w!?.'’-]+){1,11}(?=[ \t]*(?:\n|$|[ \t]#))")

NUMBER = re.compile(
    r"[+~<>=-]?(?:0x[0-9a-f]+|[\d_,.:/*x()\[\]%>+-]+(?:e[+-]?\d+)?)\s?(?:[kmgtp]?i?b|[kmgt]|m?s|h|tokens?|(?:it|tokens?|tok)/s)?",
    re.IGNORECASE,
)
PATH = re.compile(r"(?:~?|\.{1,2}|[A-Za-z]:|\$\{?\w+\}?)[/\\].*")
REFERENCE = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
PIECE = re.compile(r"[A-Za-z0-9]+")
WORDY = re.compile(r"[A-Za-z]*\d*|\d+[A-Za-z]{0,3}")
MODEL = re.compile(r"[A-Za-z]{0,8}\d{1,4}[A-Za-z]{1,8}\d{0,2}")  # RTX6000Ada, A100x8

COMMAND = re.compile(r"(?:\b(?:ENV|ARG|setenv|set|config|configure)(?:[ \t]+-{1,2}\w+|[ \t]+set)?|^)[ \t]+$")


class Secret(NamedTuple):
    """Where a secret stands in its text."""

    start: int
    end: int


class Names(NamedTuple):
    """rules/secret_names.yaml, ready to search with."""

    pattern: re.Pattern[str]
    rows: dict[str, dict[str, Any]]  # by word
    starts: tuple[str, ...]  # the words, without those that begin with another
    owners: frozenset[str]
    plain: frozenset[str]
    literals: frozenset[str]
    placeholder: re.Pattern[str]
    prose: frozenset[str]


@cache
def _names() -> Names:
    data = rule_files.table("secret_names")
    rows = {word: row for row in data["names"] for word in row["words"]}
    words = "|".join(re.escape(word) for word in sorted(rows, key=len, reverse=True))
    tails = "|".join(data["tails"])
    name = rf"(?P<word>(?i:{words}))(?:[_-]?(?:\d{{1,2}}|(?i:{tails})(?![a-z])))*+(?P<plural>[sS](?![A-Za-z]))?(?![^\W是为])(?!-\w)"
    return Names(
        re.compile(name + SEPARATOR, re.VERBOSE),
        rows,
        tuple(word for word in rows if not any(word.startswith(other) for other in rows if other != word)),
        frozenset(data["owners"]),
        frozenset(data["plain"]),
        frozenset(data["literals"]),
        re.compile("|".join(data["placeholders"]), re.IGNORECASE | re.DOTALL),
        frozenset(data["prose"]),
    )


def folded(text: str) -> str:
    """The text in lower case, each character at its place."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(sign.lower()[0] for sign in text)  # a letter whose small form is two


def secrets(text: str) -> Iterator[Secret]:
    """The values in a text that the names beside them mark as secrets, in order."""
    end = 0
    for position in _starts_of_words(text):
        match = _names().pattern.match(text, position) if position >= end else None
        demand = _demand(text, match) if match else None
        if match and demand:
            found, seen_to = _values(text, match, demand)
            yield from found
            end = found[-1].end if found else seen_to if seen_to - match.end() > LONG else position


def _starts_of_words(text: str) -> list[int]:
    """Where the words that secret names end in begin. (Searching for one after the other takes a tenth of the time of a pattern of all.)"""
    lower = folded(text)
    starts = {match.start() for word in _names().starts if word in lower for match in re.finditer(re.escape(word), lower)}
    return sorted(starts)


def _demand(text: str, match: re.Match[str]) -> str | None:
    """How much the value has to look like a secret; None: the name is none that marks secrets."""
    start = match.start("word")
    front = _front(text, start)
    of_name = _demand_of_name(front, match["word"], match["plural"] is not None)
    if of_name is None:
        return None
    before = text[max(0, start - len(front) - 1) : start - len(front)]
    form = match.lastgroup
    is_tag = before == "<" and match.end("word") == match.start("tag")  # and no placeholder, <token-1>
    if (form == "tag" and not is_tag) or (form != "assign" and before in ("$", "{")):  # or the value of a variable
        return None
    if form in ("comma", "table", "verb", "shi"):
        return max(of_name, "mixed", key=DEMANDS.index)
    if form == "blank" and not front.startswith("-") and not _is_set_by_blank(text, start - len(front)):
        return "mixed" if of_name == "any" else "random"
    if before in ("?", "&", ";") and form == "assign" and text[match.end() - 1] == "=":  # a query
        return min(of_name, "mixed", key=DEMANDS.index)
    if front.startswith("--") and of_name == "random" and len(front) == 2:  # --token, --key
        return "mixed"
    return of_name


def _is_set_by_blank(text: str, start: int) -> bool:
    """Whether the words before a name say that its value follows behind a blank: ENV NAME value."""
    line = text[max(0, start - 40) : start]
    return bool(line) and COMMAND.search(line) is not None and not line.isspace()


def _front(text: str, start: int) -> str:
    """The part of an identifier before its last word."""
    first = start
    while first > 0 and start - first < MAX_FRONT and (text[first - 1].isalnum() or text[first - 1] in "_-."):
        first -= 1
    return text[first:start]


def _demand_of_name(front: str, word: str, is_plural: bool) -> str | None:
    names = _names()
    row = names.rows[word.lower()]
    last = front[-1:]
    is_apart = not last.isalnum() or (word[0].isupper() and last.islower()) or not last.isascii()
    pieces = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+", front)
    before = pieces[-1].lower() if pieces else ""
    if before in names.plain:
        return None
    if before in names.owners:
        demand: str = row["owned"]
        return demand
    if not is_apart and not last.isdigit() and row["glued"] != "any":
        return "random" if row["glued"] == "random" else None
    demand = row["alone"]
    return max(demand, "random", key=DEMANDS.index) if is_plural and demand == "mixed" else demand  # tokens: a number of them


def _values(text: str, match: re.Match[str], demand: str) -> tuple[list[Secret], int]:
    """The values behind a separator that are secrets, one or all of a list, and the end of what was looked at."""
    found: list[Secret] = []
    opening = OPENING.match(text, match.end())
    position = opening.end() if opening else match.end()
    is_list = opening is not None and opening[0].strip()[:1] in ("[", "(", "-")
    is_block = opening is not None and opening[0][:1] in ("|", ">")
    if opening and opening[0].rstrip().endswith("(") and len(opening[0].strip()) > 1:
        demand = max(demand, "mixed", key=DEMANDS.index)  # an argument of a call
    while True:
        value, end = _value_at(text, position)
        if value is None:
            return found, position
        if is_block:
            value = Secret(value.start, _end_of_block(text, value.start))
        elif demand == "any" and end == value.end and match.lastgroup == "assign":
            value = _whole_phrase(text, match, value)
        if value.end > value.start and _is_secret(text, value, demand, match):
            found.append(value)
        following = NEXT_OF_LIST.match(text, value.end) if is_list else None
        if following is None:
            return found, value.end
        position = following.end()


def _value_at(text: str, position: int) -> tuple[Secret | None, int]:
    """The value that begins here, without quotes and scheme, and where it ends with its quote."""
    opened = OPEN_QUOTE.match(text, position)
    if opened:
        end = _closing(text, opened.end(), opened[0])
        if end is not None:
            scheme = SCHEME.match(text, opened.end(), end)
            return Secret(scheme.end() if scheme else opened.end(), end), end + len(opened[0])
        position = opened.end()
    if scheme := SCHEME.match(text, position):
        position = scheme.end()
    bare = BARE.match(text, position, position + MAX_VALUE)
    if bare is None:
        return None, position
    written = _balanced(bare[0].rstrip(".,;:"))
    return Secret(position, position + len(written)), position + len(written)


def _closing(text: str, start: int, quote: str) -> int | None:
    """Where the text that a quote opened is closed; None: it is not closed on its line."""
    limit = min(len(text), start + MAX_VALUE)
    if len(quote) < 3 or quote.startswith("&"):
        line_end = text.find("\n", start, limit)
        limit = line_end if line_end >= 0 else limit
    end = text.find(quote, start, limit)
    while end > 0 and not quote.startswith("\\") and text[end - 1] == "\\" and text[end - 2 : end] != "\\\\":  # an escaped quote inside
        end = text.find(quote, end + 1, limit)
    return end if end >= 0 else None


def _balanced(written: str) -> str:
    """Without closing brackets that were opened before the value, and what follows them."""
    depth = 0
    for index, sign in enumerate(written):
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
            if depth < 0 and not written[index + 1 : index + 2].isalnum():
                return written[:index].rstrip(".,;:")
    return written


def _end_of_block(text: str, start: int) -> int:
    """The end of a YAML block scalar: the last line indented like its first."""
    line = text.rfind("\n", 0, start) + 1
    indent = text[line:start]
    end = text.find("\n", start)
    while end >= 0 and text.startswith(indent, end + 1) and text[end + 1 + len(indent) : end + 2 + len(indent)].strip():
        end = text.find("\n", end + 1)
    return len(text) if end < 0 else end


def _whole_phrase(text: str, match: re.Match[str], value: Secret) -> Secret:
    """A passphrase of several words that is all a line of a config sets."""
    line = text.rfind("\n", max(0, match.start() - 200), match.start()) + 1
    is_setting = re.fullmatch(r"[\s\d|>:+-]*[\w.\"'-]*", text[line : match.start()]) is not None
    is_spaced = text[match.end("assign") : match.end()] != "" and match["assign"] in (":", "=", "：")
    rest = REST_OF_LINE.match(text, value.end, value.end + 200) if is_setting and is_spaced else None
    return Secret(value.start, rest.end()) if rest else value


def _is_secret(text: str, value: Secret, demand: str, match: re.Match[str]) -> bool:
    written = text[value.start : value.end].strip()
    names = _names()
    is_bare = not OPEN_QUOTE.match(text[value.start - 1 : value.start])
    first_word = re.split(r"[\s,.:;]", written, maxsplit=1)[0].lower()
    if written.lower() in names.literals or names.placeholder.fullmatch(written) or re.search(r"<[a-z]+-\d+>", written):
        return False
    if is_bare and (
        text[value.end : value.end + 1] in ("(", "[")
        or re.match(r"[\w.]*[(\[]", written)
        or _is_reference(written, text[: match.end("word")])
    ):
        return False
    if match.lastgroup == "comma" and re.split(r"[-_.]", written.lower().removesuffix("-data"))[-1] in names.rows:  # names in a row
        return False
    if re.match(r"[a-z][\w+.-]{1,20}:/{2}", written, re.IGNORECASE) or (PATH.fullmatch(written) and not is_random(written)):
        return False
    if NUMBER.fullmatch(written):
        return demand == "any" and len(re.sub(r"\D", "", written)) >= 4 and written.isalnum()
    if match.lastgroup == "blank" and written.startswith("-"):  # the next option
        return False
    if first_word in names.prose and (is_bare or " " in written):
        return demand == "any" and not is_bare and " " in written and match.lastgroup == "assign" and "=" in (match["assign"] or "")
    if demand == "any":
        return len(written) >= 3
    if demand == "text":
        is_sentence = is_bare and written.isalpha() and written.islower() and re.match(r"[ \t]+[a-z]", text[value.end : value.end + 9])
        return len(written) >= 6 and not is_sentence
    if demand == "mixed":
        return len(written) >= 6 and " " not in written and _is_mixed(written)
    return " " not in written and is_random(written) and (match.lastgroup != "blank" or len(written) >= 16)


def _is_reference(written: str, name: str) -> bool:
    """Whether it names another setting or variable: args.hub_token, my_password, or what the name says too."""
    if not REFERENCE.fullmatch(written):
        return False
    last = re.split(r"[._]", written)[-1].lower()
    rows = _names().rows
    is_name = ("." in written or "_" in written) and (last in rows or last.removesuffix("s") in rows)
    return is_name or (
        len(written) < MAX_FRONT and re.search(rf"(?<![a-z]){re.escape(last)}$", name[-MAX_FRONT:], re.IGNORECASE) is not None
    )


def _is_mixed(written: str) -> bool:
    kinds = (str.isdigit, str.isalpha, lambda sign: not sign.isalnum() and sign not in "_. ")
    return sum(any(map(kind, written)) for kind in kinds) >= 2 or is_random(written)


def is_random(written: str) -> bool:
    """Whether eight characters or more of it are no words, sizes or versions, and differ as those of a generated text do."""
    odd = "".join(piece for piece in PIECE.findall(written) if not _is_wordy(piece))
    return len(odd) >= 8 and _entropy(odd) >= 2.2


def _is_wordy(piece: str) -> bool:
    """llama3, 70b, RTX6000Ada, CamelCaseV2: letters and digits of a name, and not those of a generated text."""
    if len(piece) >= 16 and piece.isalpha() and sum(map(piece.lower().count, "aeiouy")) < len(piece) / 5:  # nobody could say it
        return False
    words = WORD.findall(piece)
    letters = sum(map(len, words))
    is_camel = piece.isalpha() or (len(piece) - letters <= len(piece) * 0.15 and not piece.islower())
    if words and is_camel and letters / len(words) >= (2.6 if len(piece) <= 12 else 3.6):
        return True
    if piece.isalpha() or len(piece) > 24:
        return False
    return WORDY.fullmatch(piece) is not None or (len(piece) <= 12 and MODEL.fullmatch(piece) is not None)


def _entropy(text: str) -> float:
    """Shannon entropy in bits per character."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())
