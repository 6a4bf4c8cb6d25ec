"""What a person writes about a failed job: that memory ran out, when, what was tried, and facts of origin `said` (rules/prose.yaml)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import chain, pairwise, takewhile, zip_longest
from typing import TYPE_CHECKING, Any

from diagnose import catalogue, rule_files
from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.schema import key_names, lexicon
from diagnose.facts import Fact, FactBook, Notice, Value, Witness, require_declared, typed
from diagnose.inputs import cut_traceback, turned_keys
from diagnose.inputs.pasted_page import LARGEST, PRE, PRE_END, is_page
from diagnose.parse.facts import failure_facts
from diagnose.parse.frames import phases
from diagnose.parse.model.event import Event
from diagnose.parse.text.kept_patterns import KeptPatterns
from diagnose.parse.text.lines import SHOWN
from diagnose.phrases import Text, phrase
from diagnose.units import Size

if TYPE_CHECKING:
    from diagnose.parse.model.reading import Reading
    from diagnose.scan.log_scan import Scanned

MOST = 32 << 10  # characters of sentences that are read of one page
MOST_SENTENCES = 1000  # of one page
BEHIND = 8 << 10  # characters of sentences that speak of memory and are read behind those
LONGEST = 2000  # characters of a line; a longer one is no sentence
SHORT_OUTCOME = 40  # characters of a sentence that says nothing but how the one before it ended
SHORT = 100  # characters of a line that answers the heading above it
NODE = 8  # cards of a machine; where more are named beside machines, they are those of all

#: Lines that programs wrote, lines of commands and of configs.
_PRINTED = re.compile(
    r"\d{1,2}:\d{2}:\d{2}|\b(?:INFO|WARN(?:ING)?|ERROR|DEBUG|CRITICAL)\b|^(?: {4}|\t)(?!\s{0,8}[-*•\d])"
    r"|^\s{0,8}(?:File \"|at 0x|[\[{}+<@]|-\w|\$ |>>>|#!|#SBATCH)|%\||\\\s{0,4}$"
    r"|^\s{0,8}(?:\([\w.-]{1,40}\) ?)?(?:[\w.-]{1,64}@[\w.-]{1,64}:\S{0,200}[$#%] |(?:PS )?[A-Z]:\\[^>\n]{0,200}>)"  # a prompt
    r"|^\s{0,8}[\w.]{1,60}(?:Error|Exception|Warning)\b"
    r"|Tried to allocate|by PyTorch|but unallocated|(?:try setting|and|^) PYTORCH_\w{0,12}ALLOC_CONF"
    r"|memory in use\b|to avoid\s{0,3}$|^\s{0,4}fragmentation\b"
    r"|^\s{0,8}(?:export|set|sudo|pip|python3?|torchrun|deepspeed|accelerate|bash|sh|cd|docker|import|from|def|return|git)"
    r"\s(?=\S{0,80}(?:[./=_-]|$))"
)
#: Lines that begin as settings of a program do, and what shows that a sentence begins with one all the same: `bs=4, the rest is as it was`.
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_.\[\]]{0,60}=\S|\s{0,8}(?:--\w|[a-z][a-z0-9]{0,40}_\w{1,60}\s?[:=])")
_SPOKEN = re.compile(
    r"[\u4e00-\u9fff]{2}|\s(?:is|are|was|did|didn['’]?t|does|doesn['’]?t|makes?|made|gives?|gave|but|and|still|already|the|no|my|I)\s[A-Za-z']{2}"
)
#: The beginning of a message that a sentence quotes, and how many blanks a sentence has before it.
_MESSAGE = re.compile(r"[\"'“`*]{1,2}\s?(?:[\w.]{1,80}Error: )?(?:[\w ]{2,12} )?out of memory\. Tried to allocate", re.IGNORECASE)
SAYS = 5
#: A setting in a line of its own, as people list what they changed.
_SETTING = re.compile(r"\s{0,8}[a-z][a-z_]{2,40} ?= ?\d{1,9}[,.;]?\s{0,4}")
_FENCE = re.compile(r"\s{0,12}(?:[-*>] {0,4})?(`{3,}(?=[^`]*$)|~{3,})")
#: What a person writes into the fence of a template's field all the same, and the languages of such a fence.
_WRITTEN = re.compile(
    r"[\u4e00-\u9fff].{0,400}[，。？！、]|[，。？！].{0,400}[\u4e00-\u9fff]|^\s{0,4}(?:I|I'm|I've|[Mm]y|[Ww]e)\s{1,3}[a-z]"
    r"|\b(?:I am|I have|my (?:gpu|card|machine))\b"
)
#: The mark of what stands in <pre>, [code] or {code}, and signs of which one stands where it begins.
_SHOWN, _SHOWS = "<pre>", ("<pre", "[code", "[CODE", "{code", "{noformat")
_PLAIN_FENCES = ("", "text", "txt", "plaintext", "markdown", "md")
#: Lines of the fence of a template's field that somebody filled in with a sentence or two, and what shows that a line is one.
NOTE = 3
_TOLD = re.compile(
    r"\b(?:is|are|was|were|goes|went|gets?|got|does|did|has|have|it|the|my|then|when|after|at|by|with|but|until|because|still|every|each)\b"
    r"|[\u4e00-\u9fff]{4}"
)
#: Marks of a kind of issue before its title: `[Bug]: `.
_TAG = re.compile(r"(?:\[[A-Za-z][A-Za-z /-]{1,24}\]\s?:?\s?){1,3}(?=\S)")
_MARKUP = re.compile(r"\*\*|__|`|</?[A-Za-z!][^<>]{0,80}>|!?\[([^\[\]]{0,200})\]\([^()\s]{0,400}\)")
_QUOTE = re.compile(r"^(?: {0,3}>){1,4} ?")
_BULLET = re.compile(r"^[>\s]{0,12}(?:[-*•+]|\d{1,2}[.)、](?!\d))?\s{0,8}(?:\[[ xX]\] )?")
_LISTED = re.compile(r"\s{0,12}(?:[-*•+]|\d{1,2}[.)、](?!\d))")
_HEADING = re.compile(r"[> ]{0,6}#{1,6}\s{1,4}(.{1,300}?)\s{0,4}#{0,6}\s*$|[> ]{0,6}\*\*([^*]{2,80})\*\*\s*[:：]?\s*$")
_SENTENCE = re.compile(r"[。！？；;!?]|\.(?=\s|$|(?:Why|How|What|When|I|My|It|The|This|But|And|Is|Can|Any|So|We)\s)")
_CLAUSE = re.compile(r"[，;；。!?！？]|,(?=\s)|[.:](?=\s|$)|：|\s[-–—]\s|\b(?:but|then|and yet)\b|但是?|不过|可是")
_WHILE = r"while(?! \w{2,12}ing\b| [^.,;]{2,32}\b(?:is|are|was|were|gets?) being\b)"  # and not of a time
_BUT = rf"\b(?:but|however|{_WHILE}|whereas|although)\b|但是?|不过|可是|而(?![且已是])"
_ASIDE = re.compile(r"[，；;（）()]|(?=\binstead of\b)|,(?=\s|[A-Za-z])|\s[-–—]\s|" + _BUT)
_ARROW = re.compile(r"-{1,3}>|={1,2}>|→|⇒|➜")
_CONTRAST = re.compile(r"[;；]|" + _BUT)
_PART = re.compile(_ASIDE.pattern + r"|\sand\s(?=\d|(?:the|an?|my|its|we|I|it)\s)")
#: What sets a name of one word, which is also a word of sentences: `batch=4`, `workers set to 2`.
_SETS = re.compile(r"[=:：设调改为是]|\bto\b|\d")
_OF_MEMORY = re.compile(r"OOM|oom|emory|MEMORY|VRAM|vram|\b137\b|[Kk]illed|显存|内存")
#: The line above a post of a thread, by whom it is; web pages are also copied with the name in a line of its own.
_POST = re.compile(
    r"@?(?P<who>[A-Za-z0-9][\w.-]{0,38})(?:\[bot\])?(?: · | )?(?:(?<= )(?:opened this issue|left a comment)|"
    r"(?<= )(?:description|comment(?:ed)?|opened|replied)(?= (?:·|on [A-Z]|\d|[A-Z][a-z]{2} \d)))[^.!?]{0,60}$"
)
_POSTED = re.compile(r"(?:commented|opened|replied)(?: on [A-Z][\w ,]{3,20})?$")
_OPENED = re.compile(r"\b(?:opened|description)\b")
_LOGIN = re.compile(r"@?([A-Za-z0-9][\w.-]{0,38})$")


@dataclass(slots=True)
class Sentence:
    """A sentence of a page, without markup; `heading`: it is the title or a heading."""

    text: str
    line: int
    heading: bool = False
    lead: str = ""  # the line that introduces the list in which it stands


@dataclass(slots=True)
class _Claim:
    """A value that a sentence gives for a fact, and how much weight such a place has: fields of a template say it outright."""

    name: str
    value: Value
    sentence: Sentence
    weight: int


def read_prose(logs: Sequence[Scanned], reading: Reading, configured: bool) -> Reading:
    """The reading with what a person wrote round the logs. Sentences never replace what a log says: they make a failure (`suspected`)
    only where the logs have none, and their facts rank below those of logs and configs. `configured`: configs were pasted beside them."""
    facts: list[Fact] = []
    notices: list[Notice] = []
    event: Event | None = None
    speaking: list[tuple[Scanned, list[Sentence]]] = []
    trains = False
    for log in logs:
        if log.input.bytes > LARGEST:
            continue
        sentences, last = _sentences_of_log(log)
        if last:
            message = phrase("parse.prose_cut", name=log.input.name.replace("{", "("), line=last)
            notices.append(Notice("info", "prose_cut", message, Witness(log.input.name, last)))
        trains = trains or any(_pattern(_table()["learns"]).search(sentence.text) for sentence in sentences)
        failure = _failure(log, sentences) if event is None and reading.root is None else None
        event = event or failure
        speaking.append((log, sentences))
        reading = _with_phase(reading, sentences)
        if failure is not None or is_page(log):
            facts += facts_in(sentences, log.input.name)
    if reading.root is None:
        event = event or _reserves(logs, facts) or next(filter(None, (_unnamed(log, sentences) for log, sentences in speaking)), None)
    if event is not None:
        own = (*failure_facts.figures(event), *failure_facts.circumstances(event), *failure_facts.trainer(event))
        facts = [*(fact._replace(origin="said") if fact.origin == "log" else fact for fact in own), *facts]
        if event.phase != "unknown":
            facts.append(Fact("log.loading", event.phase == "model_load", "said", event.evidence[0]))
        reading = reading._replace(events=(*reading.events, event))
    names = {fact.name for fact in (*reading.facts, *facts)}
    if not configured and names.isdisjoint(_table()["trains"]):
        facts = _of_engine(facts) if "rollout.engine" in names else _with_one_model(facts, trains)
    facts, refuted = _without_refuted(facts, reading)
    return reading._replace(facts=(*reading.facts, *facts), notices=(*reading.notices, *notices, *refuted))


def _with_one_model(facts: Iterable[Fact], trains: bool) -> list[Fact]:
    """The facts of a page that does not say how its job trains: the model it names is the job's where it names no other and nothing is
    trained. What training takes differs sixteenfold between the ways to do it, so that the model alone says nothing there."""
    held = list(facts)
    paths = {str(fact.value) for fact in held if fact.name == "model.path"}
    is_one = len({catalogue.model(path) or path for path in paths}) == 1
    return held if is_one and not trains else [_only_named(fact) for fact in held]


def _of_engine(facts: Iterable[Fact]) -> list[Fact]:
    """The facts of a page on an engine that trains nothing: its lengths and its parallelism are the engine's."""
    engine = _table()["settings"]["of_engine"]
    return [fact._replace(name=engine.get(fact.name, fact.name)) for fact in facts]


def _only_named(fact: Fact) -> Fact:
    """The fact; a model on a page that says of no training and of no engine what it does is only named: nothing is computed of it but
    which of its tensors the request is as large as."""
    return fact._replace(name="report.model") if fact.name == "model.path" else fact


# -- sentences


def _sentences_of_log(log: Scanned) -> tuple[list[Sentence], int]:
    """The sentences of a page, and the line of the last one that is read where there are too many; 0: all are read. Behind that one only
    those that speak of memory are."""
    sentences: list[Sentence] = []
    size, last, end = 0, 0, MOST

    def is_read(line: str) -> bool:
        return not last or _OF_MEMORY.search(line) is not None

    for excerpt in log.excerpts:
        for sentence in sentences_of(excerpt.raw.decode("utf-8", "replace"), excerpt.line, is_read):
            size += len(sentence.text)
            if not last and (size > MOST or len(sentences) == MOST_SENTENCES):
                last, end = sentences[-1].line if sentences else sentence.line, size + BEHIND
            if size > end:
                return sentences, last if is_page(log) else 0
            if not last or _OF_MEMORY.search(sentence.text):
                sentences.append(sentence)
    return sentences, last if is_page(log) else 0


def sentences_of(text: str, first: int = 1, is_read: Callable[[str], bool] = bool) -> Iterator[Sentence]:
    """The sentences that the reporter wrote, fenced blocks, printed lines, commands and other people's comments left out. `first`: number
    of the first line; `is_read`: whether a line is looked at."""
    fence, label, lead, is_title = "", "", "", first == 1
    author, is_others, above, is_plain, is_note = "", False, "", False, False
    lines = text.split("\n")
    for number, quoted in enumerate(lines, first):
        line = _QUOTE.sub("", quoted)
        if not fence and (poster := _poster(line.strip(), above)):
            author = poster if _OPENED.search(line) else author or poster
            is_others = poster != author
            continue
        above = line.strip() or above
        mark = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if mark is not None and line.count(mark[1]) == 1 and (not fence or mark[1].startswith(fence)):
            fence, label = "" if fence else mark[1], ""
            is_plain = line[mark.end() :].strip().lower() in _PLAIN_FENCES
            is_note = is_plain and bool(fence) and _is_note(lines[number - first + 1 :][: NOTE + 1], fence)
            continue
        if fence == _SHOWN and PRE_END.search(line):
            fence = ""
            continue
        if not fence and any(sign in line for sign in _SHOWS) and (shown := PRE.match(line)) and not PRE_END.search(line, shown.end()):
            fence, is_plain = _SHOWN, False
            continue
        is_named = is_title or not line.strip() or _LOGIN.match(line.strip()) or _HEADING.match(line)
        author = author if is_named else author or "?"  # what stands above anybody's name is the reporter's
        if not line.strip() or len(line) > LONGEST or not is_read(line):
            continue
        if fence and not (is_note or (is_plain and _WRITTEN.search(line))):
            continue
        line = _TAG.sub("", line, count=1) if is_title and _TAG.match(line) else line
        line = _without_message(line)
        heading = _HEADING.match(line)
        if heading is None and _is_printed(line) and not _SETTING.fullmatch(line):
            is_title, label = False, ""
            continue
        if is_others:
            continue
        plain = _plain(heading[1] or heading[2]) if heading else _plain(line)
        is_listed = _LISTED.match(line) is not None
        parts = [plain] if heading or is_title else _parts(plain)
        for part in parts:
            yield Sentence(part, number, heading is not None or is_title, lead if is_listed else "")
        lead = lead if is_listed else parts[-1] if parts and plain.endswith((":", "：")) else ""
        if label and heading is None and len(plain) <= SHORT:  # the answer to a field of a template
            yield Sentence(f"{label}: {plain}", number)
        label = plain if heading and not is_title and len(plain) <= SHORT else ""
        is_title = False


def _is_note(lines: Sequence[str], fence: str) -> bool:
    """Whether what begins here is a sentence or two that a person put into a fence which ends soon."""
    inside = [line for line in takewhile(lambda line: not line.strip().startswith(fence), lines) if line.strip()]
    is_short = len(inside) < len(lines) and len(inside) <= NOTE
    return is_short and not any(map(_is_printed, inside)) and any(line.count(" ") >= SAYS and _TOLD.search(line) for line in inside)


def _is_printed(line: str) -> bool:
    """Whether a program wrote a line, or it is one of a command or a config; a sentence may begin with a setting."""
    if _PRINTED.search(line):
        return True
    setting = _ASSIGNED.match(line)
    return setting is not None and ("#" in line or not _SPOKEN.search(line, setting.end()))


def _without_message(line: str) -> str:
    """A sentence without the message that it quotes, and what stands behind that; any other line as it is."""
    message = _MESSAGE.search(line)
    own = line[: message.start()] if message else ""
    return own if own.count(" ") >= SAYS and not _PRINTED.search(own) else line


def _poster(line: str, above: str) -> str:
    """Who wrote what stands below this line of a thread; "" for any other line."""
    post = _POST.match(line)
    if post is not None:
        return post["who"]
    login = _LOGIN.match(above) if _POSTED.match(line) else None
    return login[1] if login else ""


def _plain(line: str) -> str:
    """A line without markup; the cells of a table's row as `name: value`."""
    text = _MARKUP.sub(lambda match: match[1] or "", _BULLET.sub("", line)).strip()
    return ": ".join(filter(None, (cell.strip() for cell in text.strip("|").split("|")))) if text.startswith("|") else text


def _parts(text: str) -> list[str]:
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


# -- the failure


def _failure(log: Scanned, sentences: Sequence[Sentence]) -> Event | None:
    """The failure of memory that the text says there was; a heading before any sentence."""
    report = next(
        (
            (sentence, rule)
            for heads in (True, False)
            for sentence in sentences
            if sentence.heading is heads and (rule := _reports(sentence.text))
        ),
        None,
    )
    return None if report is None else _event(log, sentences, *report)


def _unnamed(log: Scanned, sentences: Sequence[Sentence]) -> Event | None:
    """The failure of a page that speaks of memory, though no sentence of it and no line that is known says that some ran out."""
    table = _table()["unnamed"]

    def speaks(text: str, where: str) -> bool:
        text = _pattern(table["none"]).sub("", text)
        return _pattern(table[where]).search(text) is not None and not _speaks_of_failure(text)  # else that was denied or supposed

    if not is_page(log):
        return None
    complains = (each for each in sentences if speaks(each.text, "title" if each.heading and each is sentences[0] else "sentence"))
    sentence = next(chain(complains, (line for line in _printed_lines(log) if speaks(line.text, "printed"))), None)
    if sentence is None:
        return None
    on_host = _pattern(table["host"]).search(sentence.text) is not None and not _pattern(_table()["whose"]["card"]).search(sentence.text)
    rule = {"family": _table()["whose"]["family"] if on_host else table["family"], "general": not on_host}
    return _event(log, sentences, sentence, rule, reason="unnamed")


def _printed_lines(log: Scanned) -> Iterator[Sentence]:
    """The lines of a page, whoever wrote them."""
    for excerpt in log.excerpts:
        for number, line in enumerate(excerpt.raw[:MOST].decode("utf-8", "replace").split("\n"), excerpt.line):
            if len(line) <= LONGEST:
                yield Sentence(line.strip(), number)


def _event(log: Scanned, sentences: Sequence[Sentence], sentence: Sentence, rule: Mapping[str, Any], *, reason: str = "said") -> Event:
    """The failure that a sentence of the log tells of."""
    page, frames, place = cut_traceback.frames_at_last_place(log)
    said = (phases.not_over(phase, frames) for phase in _phases_said(sentence, sentences))
    last = log.excerpts[-1]
    printed = "" if frames else phases.phase_of_lines(last, 0, len(last.raw))
    phase = phases.phase_of_frames(frames) or next(filter(None, said), "")
    if printed and phase in ("", "model_load"):  # people call all that comes before the first answer loading
        phase = printed
    witness = Witness(log.input.name, sentence.line, 0, sentence.text[:SHOWN])
    if rule.get("general"):
        particular = next((other for each in sentences if (other := _reports(each.text)) and not other.get("general")), None)
        rule = particular or _whose(rule, sentences, phase)
        if particular is None and _fills_a_disk(sentences):
            return Event(family="other", status="lookalike", reason="disk_full", exception=sentence.text[:120], evidence=(witness,))
    evidence = (witness, page.witness(place)) if page is not None and frames else (witness,)
    return Event(
        family=rule["family"],
        status="suspected",
        reason=reason,
        exception=sentence.text[:120],
        phase=phase or "unknown",
        frames=frames,
        evidence=evidence,
    )


def _reserves(logs: Sequence[Scanned], facts: Sequence[Fact]) -> Event | None:
    """The question why an engine takes so much of the card, which is no failure: its share, reserved at the start."""
    table = _table()["reserves"]
    said = {fact.name: fact for fact in facts}
    engine, taken = said.get("rollout.engine"), said.get("report.reserved")
    if engine is None or taken is None or not _pattern(table["engines"]).match(str(engine.value)):
        return None
    if not any(_pattern(table["asks"]).search(sentence.text) for log in logs for sentence in _sentences_of_log(log)[0]):
        return None
    return Event(family="other", status="lookalike", reason="share_reserved", exception=taken.witness.text[:120], evidence=(taken.witness,))


def _phases_said(report: Sentence, sentences: Sequence[Sentence]) -> Iterator[str]:
    """The phases in which it failed by the words of a page, those of the weightiest place first; "" from a sentence that names none."""
    yield says_phase(report.text)
    yield from (says_phase(other.text) for other in sentences if says_failure(other.text))
    yield from (_fails_in(other.text) for other in sentences)
    yield from (says_phase(other.text) for other in sentences if other.heading and other.line == 1)


def _whose(rule: Mapping[str, Any], sentences: Sequence[Sentence], phase: str) -> Mapping[str, Any]:
    """A general rule with the family of the memory that the page speaks of: the host's where it never names that of the card, as where data
    are read; the card's where what died does its job on the CPU alone."""
    words = _table()["whose"]
    is_said = {name: any(_pattern(words[name]).search(each.text) for each in sentences) for name in ("host", "card", "works_on_cpu")}
    if rule["family"] == words["family"]:
        return {**rule, "family": words["card_family"]} if is_said["works_on_cpu"] else rule
    on_host = (is_said["host"] or phase == "dataset") and not is_said["card"]
    return {**rule, "family": words["family"]} if on_host else rule


def _fills_a_disk(sentences: Sequence[Sentence]) -> bool:
    """Whether what leaks by the words of a page is a disk: it is full, and nothing is said of the memory of card or host."""
    words = _table()["whose"]
    of_memory = [words["host"], words["card"], "{OOM}"]
    is_said = any(_pattern(words["disk"]).search(each.text) for each in sentences)
    return is_said and not any(_pattern(pattern).search(each.text) for pattern in of_memory for each in sentences)


def _with_phase(reading: Reading, sentences: Iterable[Sentence]) -> Reading:
    """The reading with the phase in which a sentence says that it failed, where the log does not show it."""
    root = reading.root
    if root is None or reading.events[root].phase != "unknown":
        return reading
    frames = reading.events[root].frames
    phases_said = ((sentence, says_phase(sentence.text) if _reports(sentence.text) else _fails_in(sentence.text)) for sentence in sentences)
    sentence, phase = next(((sentence, phase) for sentence, phase in phases_said if phases.not_over(phase, frames)), (None, ""))
    if sentence is None:
        return reading
    event = replace(reading.events[root], phase=phase)
    place = _witness(event.evidence[0].source, sentence)
    said = (Fact("log.phase", event.phase, "said", place), Fact("log.loading", event.phase == "model_load", "said", place))
    return reading._replace(events=(*reading.events[:root], event, *reading.events[root + 1 :]), facts=(*reading.facts, *said))


def says_failure(text: str) -> str:
    """The family of the failure of memory that a sentence reports; "" where it reports none, denies it or supposes it."""
    rule = _reports(text)
    return "" if rule is None else str(rule["family"])


@lru_cache(maxsize=1024)  # asked several times of each sentence
def _reports(text: str) -> Mapping[str, Any] | None:
    if not _speaks_of_failure(text):
        return None
    clauses = filter(None, _CLAUSE.split(text))
    reported = [rule for clause in clauses for rule, opposite in _mentions(clause, text) if not opposite]
    return next((rule for rule in reported if not rule.get("general")), reported[0] if reported else None)


@lru_cache(maxsize=1024)
def _speaks_of_failure(text: str) -> bool:
    return any(
        _pattern(rule["says"]).search(text) for rule in _table()["failure"] if "with" not in rule or _pattern(rule["with"]).search(text)
    )


def _mentions(clause: str, sentence: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The failures of memory that a clause speaks of, with the word by which it means the opposite ("" for one that it reports)."""
    for rule in _table()["failure"]:
        match = _pattern(rule["says"]).search(clause)
        if match is not None and ("with" not in rule or _pattern(rule["with"]).search(sentence)):
            yield rule, _opposite(clause[: match.start()], clause[match.end() :], sentence)


def _opposite(before: str, behind: str, sentence: str) -> str:
    """Whether words round a failure make it `denied` or `supposed`; "" where they leave it as it is."""
    table = _table()["opposite"]
    is_taken_back = _pattern(table["yet"]).search(sentence) is not None
    for kind in ("denied", "supposed"):
        if _pattern(table[kind]["behind"]).search(behind):
            return kind
        if not is_taken_back and _pattern(table[kind]["before"]).search(before):
            return kind
    return ""


def says_phase(text: str) -> str:
    """The phase in which it failed by a sentence's words; "" where they name none. Of what comes one after the other, only where it fails
    counts: `load 3G --> train OOM`."""
    if _ARROW.search(text):
        text = next((part for part in _ARROW.split(text) if _speaks_of_failure(part)), text)
    return next((str(rule["phase"]) for rule in _table()["when"] if _says(rule, text)), "")


def _says(rule: Mapping[str, Any], text: str) -> bool:
    """Whether a rule's words stand in a text, and none of those that keep it from being read there."""
    return _pattern(rule["says"]).search(text) is not None and not ("unless" in rule and _pattern(rule["unless"]).search(text))


def _fails_in(text: str) -> str:
    """The phase that a clause names in which it failed in some way; "" where none does, or one in which something works."""
    table = _table()
    fails, works = _pattern(table["fails"]), _pattern(table["works"])
    return next(
        (phase for part in _ASIDE.split(text) if part and fails.search(part) and not works.search(part) and (phase := says_phase(part))), ""
    )


# -- facts


def facts_in(sentences: Sequence[Sentence], source: str) -> list[Fact]:
    """The facts that the sentences state. Of a fact with several values the weightiest counts; where such differ, none."""
    claims: dict[str, list[_Claim]] = {}
    tried: dict[str, Sentence] = {}
    vain: set[str] = set()
    helped: dict[str, Sentence] = {}
    generates = _generates(sentences)
    for sentence, following in zip_longest(sentences, sentences[1:]):
        for remedy, in_vain in tried_in(sentence.text, f"{sentence.lead} {_outcome(following)}").items():
            tried.setdefault(remedy, sentence)
            vain |= {remedy} if in_vain else set()
        for remedy in helped_in(sentence.text):
            helped.setdefault(remedy, sentence)
        for claim in _claims(sentence, generates):
            claims.setdefault(claim.name, []).append(claim)
    facts = [Fact("report.tried", remedy, "said", _witness(source, sentence)) for remedy, sentence in tried.items() if remedy not in helped]
    facts += [fact._replace(name="report.has") for fact in facts if fact.value not in vain]
    unchanged = _pattern(_table()["unchanged"])
    facts += [
        fact._replace(name="report.no_effect") for fact in facts if fact.name == "report.tried" and unchanged.search(fact.witness.text)
    ]
    facts += [Fact("report.helped", remedy, "said", _witness(source, sentence)) for remedy, sentence in helped.items()]
    if (sentence := _same_samples(sentences)) is not None:
        facts.append(Fact("report.same_samples", True, "said", _witness(source, sentence)))
    for name, less in _table()["tells_more"].items():  # a card's name says its memory
        if name in claims:
            claims.pop(less, None)
    for name, stated in claims.items():
        stated = _of_several(name, stated)
        weight = max(claim.weight for claim in stated)
        best = dict.fromkeys(claim.value for claim in stated if claim.weight == weight)
        values = {value for value in dict.fromkeys(claim.value for claim in stated) if all(_agree(value, other) for other in best)}
        agreeing = [claim for claim in stated if claim.value in values]
        if agreeing:
            longest = max(agreeing, key=lambda claim: len(str(claim.value)))
            facts.append(Fact(name, longest.value, "said", _witness(source, longest.sentence)))
            if (name, longest.value) == ("hardware.count", 1):
                facts.append(facts[-1]._replace(name="parallel.world"))
    return facts


#: The most by which as many samples differ, and how far batches are apart that tell.
AS_MANY, APART = 1.6, 2


def _same_samples(sentences: Sequence[Sentence]) -> Sentence | None:
    """The last sentence by which it fails after as many samples whatever the batch: 64 rows after 10,000 batches, 32 after 20,000."""
    seen: dict[int, int] = {}
    last = None
    for sentence in sentences:
        for run in _pattern(_table()["batches"]).finditer(sentence.text):
            seen[int(run["batch"])], last = int(run["batch"]) * int(run["steps"]), sentence
    if len(seen) < APART or min(seen) < 1 or max(seen) < APART * min(seen):
        return None
    return last if max(seen.values()) <= AS_MANY * min(seen.values()) else None


def _of_several(name: str, stated: list[_Claim]) -> list[_Claim]:
    """The claims that count where values differ: of what people lower until nothing is left the smallest, wherever it stands; of the
    weightiest counts of cards the smallest, unless one of them is a single card, which is another run."""
    if name not in _table()["smallest"]:
        return stated
    least = _table()["smallest"][name]
    weight = max(claim.weight for claim in stated)
    held = [claim for claim in stated if claim.weight == weight] if least else stated
    numbers = {claim.value for claim in held if isinstance(claim.value, int)}
    smallest = min(numbers, default=0)
    return [claim for claim in held if claim.value == smallest] if len(numbers) > 1 and smallest > least else stated


def _outcome(following: Sentence | None) -> str:
    """What a short sentence says of the one before it: `Same result.`, `All OOM.`"""
    is_end = following is not None and len(following.text) <= SHORT_OUTCOME and _pattern(_table()["ends"]).match(following.text)
    return following.text if following is not None and is_end else ""


def _agree(value: Value, other: Value) -> bool:
    """Whether two values are one, the second perhaps less particular: `A100 80GB` and `A100`, a model's name and its id, 250 and 252 GB."""
    if value == other:
        return True
    if isinstance(value, Size) and isinstance(other, Size):
        return abs(value.bytes - other.bytes) <= max(value.bytes, other.bytes) // 10
    if not isinstance(value, str) or not isinstance(other, str):
        return False
    one, two = _cards_named(value), _cards_named(other)
    if one and two:
        return all(card in two for card in one)
    return catalogue.model(value) is not None and catalogue.model(value) == catalogue.model(other)


@lru_cache(maxsize=1024)  # pages repeat themselves
def tried_in(text: str, lead: str = "") -> Mapping[str, bool]:
    """The remedies that a sentence names as tried without success (true), and switches that the job has by its words (false). `lead`: the
    line above its list, and what the next sentence says of this one."""
    real, own = _real(text), _own_words(text)
    in_vain = bool(real) and not _is_advice(text) and _pattern(_table()["tries"]).search(f"{lead} {real}") is not None
    may_be_on = bool(own) and _switches().search(own) is not None
    named: dict[str, bool] = {}
    for remedy in _remedies()["tried"] if in_vain or may_be_on else ():
        if remedy.unless and remedy.unless.search(text):
            continue
        if in_vain and (remedy.is_named(real) or remedy.is_changed(real)):
            named[remedy.id] = True
        elif may_be_on and remedy.is_switch and remedy.is_on(own):
            named.setdefault(remedy.id, False)
    return named | dict.fromkeys(_turned_in_vain(real, lead) if in_vain else (), True)


def _turned_in_vain(text: str, lead: str) -> Iterator[str]:
    """The remedies that turn the knobs whose keys a sentence names as changed without effect, in the direction of which it speaks."""
    table = _table()
    is_useless = _pattern(table["useless"]).search(f"{lead} {text}") is not None
    for key, knob in turned_keys.keys_in(text):
        ways = {
            way: _pattern(table[way].replace("{CHANGED}", table["changed"]).replace("{NOUN}", re.escape(key))).search(text) is not None
            for way in ("raised", "lowered")
        }
        if is_useless or any(ways.values()):
            yield from (remedy for remedy, goes_up in turned_keys.remedies_of(knob) if goes_up in (None, ways["raised"]))


@lru_cache(maxsize=1024)
def helped_in(text: str) -> tuple[str, ...]:
    """The remedies with which the run works by a sentence's words."""
    table = _table()
    real = "" if _is_advice(text) else _real(text)
    works, unless = _pattern(table["works"]), _pattern(table["works_unless"])
    halves = _CONTRAST.split(real) if works.search(real) else []
    parts = [part for half in halves for part in _told_apart(half) if works.search(part) and not unless.search(part)]
    return tuple(
        remedy.id
        for kind in ("tried", "helped")
        for remedy in _remedies()[kind]
        if any(remedy.is_named(part) or remedy.is_changed(part) or remedy.is_set(part) for part in ((real,) if remedy.is_whole else parts))
    )


def _told_apart(text: str) -> Sequence[str]:
    """The clauses of a part of a sentence in which one thing fails and another works; else the part as it is."""
    fails, works = _pattern(_table()["fails"]), _pattern(_table()["works"])
    clauses = _ASIDE.split(text)
    return clauses if any((fails.search(each) or _speaks_of_failure(each)) and not works.search(each) for each in clauses) else (text,)


@dataclass(slots=True)
class _Remedy:
    """How sentences name a remedy: by its own words, or by a setting that is lowered or raised."""

    id: str
    says: re.Pattern[str] | None
    setting: re.Pattern[str] | None
    change: re.Pattern[str] | None
    value: re.Pattern[str] | None
    unless: re.Pattern[str] | None
    is_switch: bool
    is_whole: bool

    def is_named(self, text: str) -> bool:
        """Whether the words stand in a sentence, and not as what it is without."""
        match = self.says.search(text) if self.says is not None else None
        return match is not None and _pattern(_table()["lacking"]).search(text[: match.start()]) is None

    def is_changed(self, text: str) -> bool:
        return self.setting is not None and bool(self.setting.search(text)) and self.change is not None and bool(self.change.search(text))

    def is_set(self, text: str) -> bool:
        """Whether a sentence gives the setting any value."""
        return self.value is not None and self.value.search(text) is not None

    def is_on(self, text: str) -> bool:
        """Whether a sentence names a switch in a part that does not say that it is off."""
        match = self.says.search(text) if self.says is not None else None
        return match is not None and _pattern(_table()["without"]).search(_part_around(text, *match.span())) is None


@cache
def _remedies() -> Mapping[str, Sequence[_Remedy]]:
    return {kind: [_remedy(rule) for rule in _table()[kind]] for kind in ("tried", "helped")}


@cache
def _switches() -> re.Pattern[str]:
    """The words of all switches."""
    return _pattern(_of_switches())


def _of_switches() -> str:
    return "|".join(rule["says"] for rule in _table()["tried"] if "switch" in rule)


def _remedy(rule: Mapping[str, Any]) -> _Remedy:
    setting = rule.get("lowers") or rule.get("raises")

    table = _table()

    def pattern(text: str | None) -> re.Pattern[str] | None:
        return _pattern(_of_setting(text, setting)) if text else None

    return _Remedy(
        id=rule["remedy"],
        says=pattern(rule.get("says")),
        setting=pattern(setting),
        change=pattern(table["lowered" if "lowers" in rule else "raised"]) if setting else None,
        value=pattern(table["valued"]) if "lowers" in rule else None,
        unless=pattern(rule.get("unless")),
        is_switch="switch" in rule,
        is_whole="whole" in rule,
    )


def _of_setting(text: str, setting: str | None) -> str:
    """A pattern of what was done with a setting."""
    return text.replace("{CHANGED}", _table()["changed"]).replace("{NOUN}", setting or "")


def _generates(sentences: Sequence[Sentence]) -> bool:
    """Whether the settings that are named are those of a program that generates, and no sentence speaks of training."""
    names = (match["name"] for each in sentences for match in _pattern(_table()["settings"]["says"]).finditer(each.text))
    return any(map(lexicon.names_generation, names)) and not any(_pattern(_table()["learns"]).search(each.text) for each in sentences)


def _claims(sentence: Sentence, generates: bool) -> Iterator[_Claim]:
    for name, value, weight in _stated(sentence.text, generates):
        yield _Claim(name, value, sentence, weight + sentence.heading)


#: The facts that need a number.
_NUMBERS = ("capacity", "series", "count", "number", "ratio", "size", "release")


@lru_cache(maxsize=1024)  # pages repeat themselves
def _stated(sentence: str, generates: bool) -> tuple[tuple[str, Value, int], ...]:
    """The facts that a sentence states, the first value of each, with their weight."""
    text, real = _own_words(sentence), "" if _is_advice(sentence) else _real(sentence)
    stated: dict[str, tuple[str, Value, int]] = {}
    has_number = _has_number(text)
    for rule, says, unless in _fact_rules() if real else ():
        if not has_number and rule["take"] in _NUMBERS and "works_too" not in rule:
            continue
        for name, value in _values(rule, says, unless, real if "works_too" in rule else text):
            stated.setdefault(name, (name, value, 1 + ("label" in rule) - 2 * ("weak" in rule)))
    batch = {"train.micro_batch_size": "infer.batch_size"} if generates else {}
    barred = {
        rule["fact"] for rule, _, _ in _fact_rules() if "nowhere" in rule and "fact" in rule and _pattern(rule["nowhere"]).search(text)
    }
    for name, value in _settings(text) if has_number else ():
        if name in barred:
            continue
        held = stated[name][1] if name in stated and name in _table()["smallest"] else None
        if isinstance(held, int) and isinstance(value, int) and 0 < value < held:
            del stated[name]
        stated.setdefault(name, (name, value, 1))
    return tuple((batch.get(name, name), value, weight) for name, value, weight in stated.values())


def _has_number(text: str) -> bool:
    """Whether a number stands in a sentence, in figures or in words."""
    return _pattern(_of_numbers()).search(text) is not None


def _of_numbers() -> str:
    return rf"\d|(?<![a-z])(?:{'|'.join(_table()['numbers'])})"


@cache
def _fact_rules() -> Sequence[tuple[Mapping[str, Any], re.Pattern[str], re.Pattern[str] | None]]:
    """The rules of facts with their patterns: what they read, and what keeps them from it."""
    return [(rule, _pattern(_of_label(rule)), _pattern(rule["unless"]) if "unless" in rule else None) for rule in _table()["facts"]]


def _of_label(rule: Mapping[str, Any]) -> str:
    return str(rule["says"]).replace("{LABEL}", rule.get("label", ""))


def _is_advice(text: str) -> bool:
    """Whether a sentence tells somebody else what to do; `set it to 0 and it still fails` is what was done."""
    return _pattern(_table()["advice"]).match(text) is not None


@lru_cache(maxsize=1024)
def _real(text: str) -> str:
    """A sentence without the clauses of what nobody did here: what others run, what is planned or asked."""
    for word in _WORD.findall(text):
        if (meant := _slips().get(word.lower())) is not None:
            text = text.replace(word, meant)
    return _without_clauses(text, _pattern(_table()["unreal"]))


_WORD, _LONG = re.compile(r"[A-Za-z]{5,16}"), 8


@cache
def _slips() -> Mapping[str, str]:
    """Keywords by the ways in which they are mistyped."""
    words: list[str] = _table()["keywords"]
    slips: dict[str, str] = {}
    for word in words:
        for at in range(1, len(word)):
            slips[word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :]] = word
            if len(word) < _LONG:
                continue
            slips[word[:at] + word[at + 1 :]] = slips[word[:at] + word[at] + word[at:]] = word
            if word[at] in "aeiou":
                slips.update((word[:at] + vowel + word[at + 1 :], word) for vowel in "aeiou")
    return {slip: word for slip, word in slips.items() if slip not in words}


@lru_cache(maxsize=1024)
def _own_words(text: str) -> str:
    """A sentence without the clauses in which somebody else, another run or a wish speaks: a run without the failure is another one."""
    if _is_advice(text):
        return ""
    own = _without_clauses(_real(text), _pattern(_table()["elsewhere"]))
    if not _speaks_of_failure(own):
        return own
    return "".join("" if index % 2 == 0 and clause and _denies(clause, text) else clause for index, clause in enumerate(_clauses(own)))


def _without_clauses(text: str, says: re.Pattern[str]) -> str:
    """A sentence without the clauses in which a match begins."""
    begins = [match.start() for match in says.finditer(text)]
    if not begins:
        return text
    so_it_works = _pattern(_table()["so_it_works"])
    kept: list[str] = []
    start = 0
    for index, clause in enumerate(_clauses(text)):
        end = start + len(clause)
        is_left = index % 2 == 0 and any(start <= begin < end for begin in begins)
        if is_left and len(kept) > 1 and so_it_works.match(clause) and not _speaks_of_failure(kept[-2]):
            kept[-2] = ""  # `on a V100, no problem`
        kept.append("" if is_left else clause)
        start = end
    return "".join(kept)


def _clauses(text: str) -> Iterator[str]:
    """The clauses of a sentence and what stands between them, by turns."""
    start = 0
    for boundary in _ASIDE.finditer(text):
        yield text[start : boundary.start()]
        yield boundary[0]
        start = boundary.end()
    yield text[start:]


def _denies(clause: str, sentence: str) -> bool:
    opposites = [opposite for _, opposite in _mentions(clause, sentence)]
    return "denied" in opposites and "" not in opposites


def _values(rule: Mapping[str, Any], says: re.Pattern[str], unless: re.Pattern[str] | None, text: str) -> Iterator[tuple[str, Value]]:
    """The facts that one rule reads in a sentence: the first match (or each) in whose part nothing stands of what keeps it from that."""
    if "nowhere" in rule and _pattern(rule["nowhere"]).search(text):
        return
    for match in says.finditer(text):
        if unless is not None and unless.search(_part_around(text, *match.span())):
            continue
        values = list(_READ[rule["take"]](rule, match))
        yield from values
        if values and "each" not in rule:
            return


def _part_around(text: str, start: int, end: int) -> str:
    """The part of a sentence in which a match stands: `RAM is 32G` of `RAM is 32G, and the GPU is new`."""
    first, last = 0, len(text)
    for boundary in _PART.finditer(text):
        if boundary.end() <= start:
            first = first if boundary[0] in "(（" else boundary.end()  # an aside belongs to what it explains
        elif boundary.start() >= end:
            last = boundary.start()
            break
    return text[first:last]


def _settings(text: str) -> Iterator[tuple[str, Value]]:
    """The settings that a sentence names as programs do, with a number: `imgsz=1280`, `tensor parallel size 2`, `max_model_len | 16k`."""
    table = _table()["settings"]
    for match in _pattern(table["says"]).finditer(text):
        words = [word for word in re.split(r"[ _.-]", ".".join(match["name"].split(".")[-2:])) if word.lower() not in ("of", "the")]
        number = match["value"].replace(",", "")
        if not {word.lower() for word in words}.isdisjoint(table["others"]):
            continue
        known = key_names.knob_in_tables(match["name"].rpartition(" ")[2])
        for start in range(max(0, len(words) - 5), len(words)):
            name = "_".join(words[start:]).lower()
            if start == len(words) - 1 and name not in table["bare"] and not _SETS.search(match["sets"]):  # a batch of 4, rank 3
                break
            knob = _setting_names().get(name)
            found = [(knob, number)] if knob else [(guess.knob, str(guess.value)) for guess in _guesses(name, number, match["k"])]
            found = [(knob, value) for knob, value in found if knob not in table["not"] and known in ("", knob)]
            if found:
                for knob, value in found:
                    times = 1024 if match["k"] and knob in table["lengths"] else 1
                    value = typed(knob, value)
                    yield knob, value * times if isinstance(value, int) else value
                break


def _guesses(name: str, number: str, in_thousands: str | None) -> Sequence[lexicon.Guess]:
    if not _means_a_knob(name):
        return ()
    number = f"{number}{'000' if in_thousands else ''}"  # within the limits of what it may be
    read = lexicon.guesses([Leaf(name, number, number, 0, 0, 0, 0)], lexicon.NEEDED).read
    return [guess._replace(value=int(str(guess.value)) // 1000 if in_thousands else guess.value) for guess in read if not guess.implied]


_means_a_knob = lru_cache(maxsize=4096)(lexicon.means_a_knob)


@cache
def _setting_names() -> Mapping[str, str]:
    return {"_".join(name.split()): knob for knob, names in _table()["settings"]["names"].items() for name in names}


def _cards(rule: Mapping[str, Any], match: re.Match[str]) -> Iterator[tuple[str, Value]]:
    """A card's name, with its memory where that is written, and how many there are."""
    parts = match.groupdict()
    name = parts["card"].strip(" -").replace("-", " ")
    memory = re.sub(r"\D", "", "".join(parts.get(name) or "" for name in ("gb", "gb2", "gb3")))
    cards = _cards_named(name)
    if not cards and name[-1] in "sS":
        name = name[:-1]
        cards = _cards_named(name)
    if not cards or (re.fullmatch(r"\d{4}", name) and not _is_card_number(match)):
        return
    if memory and _cards_named(f"{name} {memory}GB"):
        name = f"{name} {memory}GB"
    yield "hardware.gpu", name
    yield from _counts(rule, match)


#: More cards than this are not said by a number alone.
MANY = 128


def _is_card_number(match: re.Match[str]) -> bool:
    """Whether a bare number means a card: counted, or with words of cards beside it."""
    around = match.string[max(0, match.start() - 12) : match.end() + 12]
    count = _number(match.groupdict().get("count"))
    if count is not None and count > MANY:  # 1920*1080 is the size of a picture
        return False
    return (
        count is not None
        or re.search(
            r"卡|显|我|\+ ?\d{4}\b|\d{4} ?\+ ?[A-Za-z\d]|\b(?:a|my|one|on|an|gpus?|cards?)\b|\d{2}\s?GB?(?![A-Za-z])", around, re.IGNORECASE
        )
        is not None
    )


@lru_cache(maxsize=256)
def _cards_named(name: str) -> tuple[str, ...]:
    """The keys of the cards that a name may mean. Cached, because a page names few and often."""
    return tuple(card.key for card in catalogue.cards_named(name))


def _counts(_: Mapping[str, Any], match: re.Match[str]) -> Iterator[tuple[str, Value]]:
    parts = match.groupdict()
    per, nodes, count = (_number(parts.get(name)) for name in ("per", "nodes", "count"))
    total = per * nodes if per and nodes and per <= NODE else per or count
    if total and total <= 1 << 16 and not (total > MANY and _cards_named(str(total))):  # 4090 cards are one card
        yield "hardware.count", total
    if nodes and nodes <= 4096:
        yield "parallel.nodes", nodes


#: How the value that took a value's place follows it: `0.8 -> 0.7`, `bs 8 to bs 1`.
_REPLACED = re.compile(
    r" ?(?:(?:->|→|=>) ?"
    r"|,? (?:(?:and|then|I|we|it) ){0,3}(?:went|goes|came|got|lowered|reduced|cut|brought)(?: it| that)?(?: all the way)? (?:down )?to "
    r"|(?:, |/)(?=\d{1,4}(?:(?:, |/)\d{1,4}){0,6}(?:[:;.)]|$| (?:all|always|each|both|every)\b))"
    r"|、\s?|，?\s?(?:最后|一路|一直|后来|又){0,2}(?:改|降|减|调)[成为到至]\s?"
    r"|(?:,? then(?: to)?|(?:down )?to|[改降减]到) ?(?P<noun>[A-Za-z]{2,9}) ?(?:size )?|,? then(?: to)? )"
    r"(?P<value>\d{1,7}(?:\.\d{1,3})?)(?!\w|\.\d)(?! ?(?:gpus?|cards?|epochs?|steps?|workers?|nodes?|hours?|[张块]?卡)\b)"
)


def _last_value(match: re.Match[str], value: str) -> str:
    """The value at which a setting stands in the end."""
    end = match.end()
    while (replaced := _REPLACED.match(match.string, end)) is not None and (replaced["noun"] or "").lower() in match[0].lower():
        value, end = replaced["value"], replaced.end()
    return value


def _number(text: str | None) -> int | None:
    if not text:
        return None
    digits = re.sub(r"(?<=\d)(?:st|nd|rd|th)$", "", text)
    return int(digits) if digits.isdecimal() else _table()["numbers"].get(text.lower())


def _count(rule: Mapping[str, Any], match: re.Match[str]) -> Iterator[tuple[str, Value]]:
    groups = [group for group in match.groups() if group]
    number = _number(groups[0].replace(",", "")) if groups else None
    if number is None:
        return
    if len(groups) == 1:
        number = int(_last_value(match, str(number)))
    if rule.get("largest"):
        number = max(int(group) for group in groups)
    else:
        number *= rule["k"] if len(groups) > 1 else 1
    number -= rule.get("less", 0)
    if rule.get("least", 0) <= number <= rule.get("most", 10**15):
        yield rule["fact"], number


def _word(rule: Mapping[str, Any], match: re.Match[str]) -> Iterator[tuple[str, Value]]:
    text = next(group for group in match.groups() if group)
    yield rule["fact"], typed(rule["fact"], _spelled(rule, text))


def _spelled(rule: Mapping[str, Any], text: str) -> str:
    """The word of the vocabulary for a name, however its parts are joined."""
    word = text.lower()
    return str(rule.get("spelled", {}).get(re.sub(r"[\s_'-]", "", word), word))


def _release(rule: Mapping[str, Any], match: re.Match[str]) -> Iterator[tuple[str, Value]]:
    """The release of the program that it names."""
    fact = f"version.{_spelled(rule, match['name'])}"
    yield fact, typed(fact, match["release"])


def _constant(rule: Mapping[str, Any], _: re.Match[str]) -> Iterator[tuple[str, Value]]:
    yield rule["fact"], typed(rule["fact"], str(rule["value"]))


def _bytes(rule: Mapping[str, Any], match: re.Match[str]) -> Iterator[tuple[str, Value]]:
    text = next(group for group in match.groups() if group).replace(" ", "")
    size = Size.printed(re.sub(r"[GTgt](?:igs?|i?[Bb])?$", "", text), "TiB" if "t" in text.lower() else "GiB")
    if size is not None:
        yield rule["fact"], size


def _capacity(rule: Mapping[str, Any], match: re.Match[str]) -> Iterator[tuple[str, Value]]:
    """The memory of a card that is not named: what it prints is a little less."""
    size = Size.printed(re.sub(r"\D", "", next(group for group in match.groups() if group)), "GiB")
    if size is not None:
        yield rule["fact"], replace(size, low=size.bytes * 9 // 10)


#: A figure of a row of figures of memory, and how much more the next one is at least.
_WITH_UNIT = re.compile(r"(?<![\w.])(\d{1,6}(?:\.\d{1,3})?)\s?([GM])i?B?\b", re.ASCII | re.IGNORECASE)
_FIGURE, MORE = re.compile(r"(\d[\d.,]{0,9}) ?([GM])?"), 1.03


def _series(rule: Mapping[str, Any], match: re.Match[str]) -> Iterator[tuple[str, Value]]:
    """What memory grows with, where a row of its figures only rises: `49,258 -> 61,558 -> 76,124 MiB`, two of them before it fails or
    with a word of growth between them (`grown`)."""
    parts, text = match.groupdict(), match.string
    words = _table()["series"]
    units = re.findall(r"\d ?([GM])(?:i?B)?(?![a-z0-9])", text, re.IGNORECASE)
    if not units or not _pattern(words["of"]).search(text):
        return
    row, grown = parts.get("series"), parts.get("grown")
    found = _figures(row) if row else _WITH_UNIT.findall(grown or parts["steps"])
    rows = [(float(figure.replace(",", "").rstrip(".") or 0), (unit or units[-1]).upper()) for figure, unit in found]
    sizes = [figure * (1024 if unit == "G" else 1) for figure, unit in rows]
    fails = _pattern(words["fails"]).search(parts.get("end") or "") is not None
    if len(sizes) >= (2 if grown or fails else 3) and all(later >= MORE * earlier > 0 for earlier, later in pairwise(sizes)):
        with_what = next((value for value, says in words["with"].items() if _pattern(says).search(text)), "step")
        yield rule["fact"], with_what


def _figures(row: str) -> Iterator[tuple[str, str]]:
    """The figures of a row with their units; what stands behind a slash is what the card has."""
    for part in re.split(r"-{1,2}>|=>|[→⇒➜]|then|later|,(?!\d{3})|，|到", row):
        if (figure := _FIGURE.search(part)) is not None and figure[1].replace(",", "").count(".") <= 1:
            yield figure[1], figure[2] or ""


def _ratio(rule: Mapping[str, Any], match: re.Match[str]) -> Iterator[tuple[str, Value]]:
    yield rule["fact"], float(_last_value(match, match[1]))


_SIZED = re.compile(r"\d[\d.]*\s?[bm](?![a-z])", re.IGNORECASE)


def _model(rule: Mapping[str, Any], match: re.Match[str]) -> Iterator[tuple[str, Value]]:
    """A model that the catalogue knows; in a field of a template any name with a size; of no name its size alone."""
    name = match[1].rstrip(".-")
    if "bare" in rule and not _cards_named(name):
        yield "model.path", name
    if (
        not any(character.isdigit() or character == "-" for character in name)
        or len(name) < 4
        or name.endswith((".py", ".sh", ".yaml", ".json"))
    ):
        return
    if catalogue.model(name) is not None or (_SIZED.search(name) and ("label" in rule or ("weak" in rule and catalogue.kin(name)))):
        yield "model.path", name


_READ = {
    "cards": _cards,
    "capacity": _capacity,
    "count": _counts,
    "number": _count,
    "word": _word,
    "release": _release,
    "value": _constant,
    "size": _bytes,
    "series": _series,
    "ratio": _ratio,
    "model": _model,
}


# -- contradictions


def _without_refuted(facts: Iterable[Fact], reading: Reading) -> tuple[list[Fact], list[Notice]]:
    """The facts that the log does not speak against, and notices about the others: a card of another capacity, states on the host
    where it is the optimizer that found no room on the card."""
    printed = {fact.name: fact for fact in reversed(reading.facts)}
    rules = {rule["fact"]: rule for rule in _table()["facts"] if "against" in rule}
    kept: list[Fact] = []
    notices: list[Notice] = []
    for fact in facts:
        capacity = printed.get("log.capacity")
        refuting = next(
            (
                printed[name]
                for name, word in rules.get(fact.name, {}).get("against", {}).items()
                if name in printed and printed[name].value == word
            ),
            None,
        )
        if fact.name == "hardware.gpu" and capacity is not None and isinstance(capacity.value, Size):
            sizes = (size for card in catalogue.cards_named(str(fact.value)) for size in card.capacities)
            least = min(sizes, key=lambda size: size.low, default=capacity.value)
            is_far = least.low >= OTHER_CARD * capacity.value.high and not _states(fact.witness.text, capacity.value)
            if is_far and not _prints(fact.value, capacity.value):  # a cause rule tells it
                kept.append(fact._replace(name="report.card_memory", value=least))
                continue
            if _cards_that_print(capacity.value) and not _prints(fact.value, capacity.value):
                refuting = capacity
        said = rules.get(fact.name, {}).get("refuted")
        if refuting is None:
            kept.append(fact)
        elif said:  # a cause rule tells it
            kept.append(fact._replace(name=said, value=True))
        else:
            notices.append(_contradiction(fact, refuting))
    return kept, notices


#: A card of so many times the memory is not the one that failed under another description.
OTHER_CARD = 2


def _states(text: str, capacity: Size) -> bool:
    """Whether a sentence gives the card the memory that the log prints: one of a kind that is not listed, such as a laptop's."""
    return any(0.8 * capacity.low < int(number) << 30 < 1.2 * capacity.high for number in re.findall(r"\b(\d{1,3}) ?[Gg]", text))


def _prints(name: Value, capacity: Size) -> bool:
    """Whether a card of this name may print such a capacity: it is sold with as much memory as those that are known to."""
    return any(card in _cards_that_print(capacity) for card in _cards_named(str(name)))


def _cards_that_print(capacity: Size) -> set[str]:
    """The cards that are sold with as much memory as those that are known to print it; none where no card of the catalogue does."""
    return {card.key for card in catalogue.cards_of_class(catalogue.cards_of_capacity(capacity))}


def contradictions(book: FactBook) -> list[Notice]:
    """Notices about what the text says otherwise than the log or a config, which count."""
    notices = []
    for fact in book:
        best = book.fact(fact.name) if fact.origin == "said" and fact.name in _table()["compared"] else None
        if best is not None and best.origin in ("log", "config") and best.value is not None and not _agree(best.value, fact.value):
            notices.append(_contradiction(fact, best))
    return notices


def _contradiction(fact: Fact, other: Fact) -> Notice:
    """The notice that another fact, which counts, speaks against one that the text states."""
    what, counts = (Text(entry.en, entry.zh) for entry in map(require_declared, (fact.name, other.name)))
    place = f"{other.witness.source}:{other.witness.line}" if other.witness.line else other.witness.source
    message = phrase(
        "parse.text_contradicted",
        what=what,
        text=str(fact.value),
        counts=counts,
        value=str(other.value),
        where=place,
    )
    return Notice("warning", "text_contradicted", message, fact.witness)


# -- rules/prose.yaml


def _table() -> Mapping[str, Any]:
    return rule_files.table("prose")  # type: ignore[no-any-return]


@cache
def _pattern(says: str) -> re.Pattern[str]:
    """A pattern of the table, its {words} filled in; Chinese stands between words of Latin letters, so that \\b ends those."""
    return _PATTERNS.get(says)


def _expanded(says: str) -> str:
    for _ in range(3):
        for name, part in _table()["words"].items():
            says = says.replace(f"{{{name}}}", part)
    return says


def _searched() -> Iterator[str]:
    """The patterns that pages are searched for, their {words} not filled in."""
    table = _table()
    yield from (_of_switches(), _of_numbers(), "{OOM}")
    yield from _texts({name: part for name, part in table.items() if name not in ("words", "facts", "tried", "helped")})
    for rule in table["facts"]:
        yield from (_of_label(rule), *_texts({name: part for name, part in rule.items() if name != "says"}))
    for rule in (*table["tried"], *table["helped"]):
        setting = rule.get("lowers") or rule.get("raises")
        changes = [table["lowered" if "lowers" in rule else "raised"], table["valued"]] if setting else []
        yield from (_of_setting(text, setting) for text in (*_texts(rule), *changes))


def _texts(part: Any) -> Iterator[str]:
    """What may be a pattern in a part of the table."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict):
        yield from (text for name, each in part.items() if name not in ("examples", "others") for text in _texts(each))
    elif isinstance(part, list):
        yield from (text for each in part for text in _texts(each) if not isinstance(each, str))


_PATTERNS = KeptPatterns("prose.patterns", _searched, _expanded, re.IGNORECASE | re.ASCII, "prose")


def _witness(source: str, sentence: Sentence) -> Witness:
    return Witness(source, sentence.line, 0, sentence.text[:SHOWN])
