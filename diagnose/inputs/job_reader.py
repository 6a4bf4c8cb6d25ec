"""Read the inputs of one job: files, folders and archives, with the configs and wandb records that lie in them beside logs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from diagnose.adapters.formats.settings import MAX_READ_BYTES, ConfigSource
from diagnose.errors import UserError
from diagnose.facts import Notice, Witness
from diagnose.inputs.caller_arguments import as_log
from diagnose.packed import unpack_limits, unpacking
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.phrases import phrase
from diagnose.scan import job_folder, log_scan
from diagnose.scan.source import Label, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from diagnose.facts import Fact, Input
    from diagnose.inputs.caller_arguments import Material
    from diagnose.parse.model.reading import Dump, Reading
    from diagnose.scan.log_scan import Scanned

KEPT = 64 << 20  # bytes of excerpts of all logs, beyond which logs without a message are truncated
TURNED = 1 << 20  # bytes of a log that is turned round if its newest line stands first
TITLE = 300  # bytes at the start of a page in which its title stands
QUIET = 16 << 10  # bytes kept of a truncated log

#: A text with none of these was written by programs only (diagnose/inputs/pasted_page.py looks closer).
_PROSE_SIGNS = frozenset(
    (
        *(b"```", b"~~~", b"<details", b"<summary", b"<pre", b"\n# ", b"\n## ", b"\n### ", b"> #", b"|---|", b"| --- |", b"|:--", b"| :--"),
        *(
            blank + word
            for blank in (b"\n\n", b"\n\r\n")
            for word in (b"python", b"torchrun ", b"accelerate launch ", b"deepspeed ", b"vllm serve ", b"CUDA_VISIBLE_DEVICES=")
        ),
        *(b" I ", b"I'm ", b"I've ", b"\nI ", b" my ", b"\nmy ", b"My ", b"ere is ", b"ere are ", b"hanks"),
        *(
            word.encode()
            for word in (
                "：\n",
                "：\r\n",
                "如下",
                "请问",
                "请教",
                "求助",
                "大佬",
                "大家好",
                "谢谢",
                "为什么",
                "我的",
                "我用",
                "我在",
                "我们",
            )
        ),
    )
)
#: The same at the very start of a text, or a command.
_PROSE_BEGINNINGS = (
    *(
        start + blank
        for start in (b"hey", b"Hey", b"hi", b"Hi", b"yo", b"anyone", b"Anyone", b"why", b"Why", b"how", b"How")
        for blank in (b" ", b",")
    ),
    *(b"#", b"I ", b"my ", b"torchrun ", b"deepspeed ", b"accelerate launch ", b"python", b"CUDA_VISIBLE_DEVICES="),
)
#: Words of which a person's report of a failure of memory has one.
_TROUBLE = frozenset(word.encode() for word in ("OOM", "oom", "emory", "137", "显存", "内存"))
_RANK = lazy_compile(rb"(?:^|\n)\[rank(\d{1,6})\]:")
_TIME = lazy_compile(rb"(?m)^\s{0,4}[\[(\"]?(?:(\d{4}[-/]\d\d[-/]\d\d[T ]))?(\d\d:\d\d:\d\d)")
_NAMES_PROCESS = lazy_compile(r"(?i)rank|node|attempt|restart|worker-|_[0-9a-f]{8}")
#: Note of an input -> phrase of the notice about it.
_NOTES = {"damaged": "packed.damaged", "expands": "packed.expanding"}


@dataclass(slots=True, eq=False)
class JobInputs:
    """The inputs of one job: scanned logs, configs beside them, wandb metadata (`records`), and errors of unreadable inputs."""

    logs: list[Scanned] = field(default_factory=list)
    configs: list[ConfigSource] = field(default_factory=list)
    records: list[Source] = field(default_factory=list)
    errors: list[UserError] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    allowance: unpack_limits.Allowance = field(default_factory=unpack_limits.Allowance)
    _order: list[tuple[int, str]] = field(default_factory=list)
    _bytes_kept: int = 0

    # -- reading inputs

    def add(self, source: Source, number: int) -> None:
        """Read one input: a file, a folder, or an archive. `number`: its position among the caller's inputs."""
        if source.path is not None and source.path.is_dir():
            self._add_folder(source, source.path, number)
            return
        if source.path is not None or source.opener is not None:  # launchers' folders are the last parts of a path
            source = replace(source, label=_label("/".join(source.name.replace("\\", "/").split("/")[-4:])))
        counts_before = len(self.logs), len(self.errors)
        paths: list[str] = []
        piece = None
        try:
            for piece in unpacking.contents(source, self.allowance):
                if isinstance(piece, UserError):
                    self.errors.append(piece)
                elif not piece.place:
                    self._add_log(piece, number)
                else:
                    paths.append(piece.place)
                    self._add_member(piece, number)
        except UserError as error:
            self.errors.append(error)
        if paths or piece is None:
            self._finish_folder(source.name, paths, counts_before, number)

    def _add_folder(self, source: Source, top: Path, number: int) -> None:
        counts_before = len(self.logs), len(self.errors)
        try:
            files = job_folder.walk(top)
        except UserError as error:
            self.errors.append(error)
            return
        earlier = job_folder.earlier_runs([relative for relative, _ in files])
        for relative, path in files:
            if relative not in earlier:
                self._add_file(Source(str(Path(source.name) / relative), path=path, place=relative), number)
        self._finish_folder(source.name, [relative for relative, _ in files], counts_before, number)

    def _add_file(self, source: Source, number: int) -> None:
        """Read a file of a folder according to its kind."""
        kind = job_folder.kind_of(source.place)
        if kind == "none":
            return
        if kind == "config":
            self._add_config(source)
            return
        try:
            for piece in unpacking.contents(source, self.allowance):
                if isinstance(piece, UserError):
                    self.errors.append(piece)
                elif piece.place == source.place:
                    self._add_typed(piece, kind, number)
                else:
                    self._add_member(replace(piece, place=f"{source.place}/{piece.place}"), number)
        except UserError as error:
            self.errors.append(error)

    def _add_member(self, source: Source, number: int) -> None:
        """Read a file of an archive according to its kind; it may be compressed, but a nested archive is refused."""
        kind = job_folder.kind_of(source.place)
        if kind == "none":
            return
        if kind == "config":
            self._add_config(source)
            return
        for piece in unpacking.contents(source, self.allowance, nested=True):
            if isinstance(piece, UserError):
                self.errors.append(piece)
            else:
                self._add_typed(piece, kind, number)

    def _add_typed(self, source: Source, kind: str, number: int) -> None:
        if kind == "metadata":
            self.records.append(replace(source, data=source.read(MAX_READ_BYTES), handle=None))
        elif kind == "log":
            self._add_log(source, number)

    def _add_log(self, source: Source, number: int) -> None:
        if self.logs and self._has_too_many():
            return
        try:
            scanned = log_scan.scan(replace(source, label=_label(source.place)) if source.place else source)
        except UserError as error:
            self.errors.append(error)
            return
        if "damaged" in scanned.input.notes and not scanned.input.bytes:
            self.errors.append(unpack_limits.unpack_error("nothing_left", source.name, hint="copy_again"))
            return
        if may_stand_on_head(scanned):
            from diagnose.inputs import newest_first  # few logs do: not loaded at start

            turned = newest_first.turned_round(scanned)
            if turned is not None:
                scanned = turned
                self.notices.append(Notice("info", "newest_first", phrase("parse.newest_first", name=source.name), Witness(source.name)))
        self._bytes_kept += sum(len(excerpt.raw) for excerpt in (*scanned.excerpts, *scanned.samples))
        self.logs.append(_truncate(scanned) if self._bytes_kept > KEPT else scanned)
        self._order.append((number, source.place))
        for note, text in _NOTES.items():
            if note in scanned.input.notes:
                message = phrase(text, name=source.name, bytes=scanned.input.bytes)
                self.notices.append(Notice("warning", f"input_{note}", message, Witness(source.name, scanned.input.lines)))

    def _has_too_many(self) -> bool:
        """Whether the limit of logs is reached; reports it once."""
        if len(self.logs) < job_folder.LOGS:
            return False
        error = job_folder.folder_error("too_many_logs", "", "name_the_logs", most=job_folder.LOGS)
        if all(other.what != error.what for other in self.errors):
            self.errors.append(error)
        return True

    def _add_config(self, source: Source) -> None:
        data = source.read(job_folder.CONFIG + 1)
        if len(data) <= job_folder.CONFIG:
            self.configs.append(ConfigSource(source.name, data))

    def _finish_folder(self, name: str, paths: Sequence[str], counts_before: tuple[int, int], number: int) -> None:
        """After a folder or an archive: drop earlier runs, complete the ranks of its logs, and report if it held no log."""
        earlier = job_folder.earlier_runs(paths)
        if earlier:
            self.notices.append(Notice("info", "older_runs", phrase("folder.older", name=name, count=len(earlier))))
            prefix = len(name) + 1
            keep = [i for i, (source_number, path) in enumerate(self._order) if source_number != number or path not in earlier]
            self.logs = [self.logs[i] for i in keep]
            self._order = [self._order[i] for i in keep]
            self.configs = [config for config in self.configs if config.name[prefix:] not in earlier]
            self.records = [record for record in self.records if record.place not in earlier]
        own = [i for i, (source_number, path) in enumerate(self._order) if source_number == number and path]
        labels = job_folder.assign_ranks({self._order[i][1]: (self.logs[i].label, _printed_rank(self.logs[i])) for i in own})
        for i in own:
            self.logs[i] = replace(self.logs[i], label=labels[self._order[i][1]])
        if len(self.logs) == counts_before[0] and len(self.errors) == counts_before[1]:
            self.errors.append(job_folder.folder_error("no_log", name, "name_the_log"))

    def sort(self) -> None:
        """Sort the logs: earlier attempts first, then in the caller's order, then by path within a folder or an archive."""

        def key(index: int) -> tuple[object, ...]:
            number, path = self._order[index]
            return self.logs[index].label.attempt or 1, number, job_folder.natural_key(path)

        order = sorted(range(len(self.logs)), key=key)
        self.logs = [self.logs[index] for index in order]
        self._order = [self._order[index] for index in order]

    def read_pages(self, reading: Reading) -> Reading:
        """Read what a person wrote in logs that are pages (issues, chat messages): add the configs pasted into them, whose lines are no
        longer read as lines of a log, and to the reading what the sentences say."""
        pages = [log for log in self.logs if _may_be_page(log, failed=reading.root is not None)]
        if not pages:
            return reading
        from diagnose.inputs import pasted_code, pasted_page, pasted_settings, prose  # few inputs are pages: not loaded at start

        guessed: list[Fact] = []
        for page in pages:
            configs, others = pasted_page.configs_and_others(page)
            guessed += pasted_settings.facts(others, page.input.name)
            reading = pasted_page.without_settings_of(configs, page.input.name, reading)
            self.configs += configs
        shown = [fact for page in pages for fact in pasted_code.facts(page)]
        reading = reading._replace(facts=(*reading.facts, *shown)) if shown else reading
        reading = prose.read_prose(pages, reading, configured=bool(self.configs))
        known = {fact.name for fact in reading.facts}
        return reading._replace(facts=(*reading.facts, *(fact for fact in guessed if fact.name not in known)))

    # -- results

    def enrich(self, reading: Reading) -> Reading:
        """Add to a reading what wandb recorded, and the notices about the inputs."""
        if not self.records and not self.configs:
            return reading._replace(notices=(*reading.notices, *self.notices))
        from diagnose.inputs import wandb_files  # few jobs have records: not loaded at start

        self.configs, inputs, settings = split_wandb(self.configs)
        metadata = [wandb_files.read_metadata(record.name, record.data or b"") for record in self.records]
        dumps = [*settings, *(dump for _, _, dump in metadata if dump is not None)]
        return reading._replace(
            inputs=(*reading.inputs, *inputs, *(description for description, _, _ in metadata)),
            facts=(*reading.facts, *(fact for _, facts, _ in metadata for fact in facts)),
            dumps=(*reading.dumps, *wandb_files.merge_dumps(dumps)),
            notices=(*reading.notices, *self.notices),
        )


def may_stand_on_head(scanned: Scanned) -> bool:
    """Whether a small log may have its newest line first: its first times fall, or frames stand above a traceback's first line."""
    raw = scanned.excerpts[0].raw if len(scanned.excerpts) == 1 else b""
    if not raw or len(raw) != scanned.input.bytes or len(raw) > TURNED:
        return False
    times = [day + time for day, time in _TIME.findall(raw, 0, 4096)]
    if times and times[0] > times[-1] and times == sorted(times, reverse=True) and len(set(times)) > (1 if b"-" in times[0] else 2):
        return True
    head = raw.find(b"Traceback (most recent call last)")
    return head > 0 and b'File "' in raw[max(0, head - 400) : head] and b'File "' not in raw[head : head + 200]


def _may_be_page(log: Scanned, *, failed: bool) -> bool:
    """Whether a person may have written a log; of a job whose logs show no failure a short text that speaks of memory is enough."""
    if any(excerpt.spots.among(_PROSE_SIGNS) for excerpt in log.excerpts):
        return True
    if any(excerpt.raw.startswith(_PROSE_BEGINNINGS) or _has_title(excerpt.raw[:TITLE]) for excerpt in log.excerpts[:1]):
        return True
    return not failed and log.input.bytes <= QUIET and any(excerpt.spots.among(_TROUBLE) for excerpt in log.excerpts)


def _has_title(raw: bytes) -> bool:
    """Whether a text begins with a line that speaks of memory and stands alone."""
    title, _, rest = raw.partition(b"\n")
    return rest.lstrip(b" \t\r").startswith(b"\n") and any(word in title for word in _TROUBLE)


def split_wandb(sources: Sequence[ConfigSource]) -> tuple[list[ConfigSource], list[Input], list[Dump]]:
    """Split wandb's records of settings from other configs: the configs, the inputs and the settings that wandb recorded."""
    if not any(b"wandb" in source.data for source in sources):
        return list(sources), [], []
    from diagnose.inputs import wandb_files  # few jobs have records: not loaded at start

    return wandb_files.split(sources)


def read_job(materials: Iterable[Material]) -> JobInputs:
    """Read all inputs as one job. Errors are collected, not raised."""
    inputs = JobInputs()
    for number, material in enumerate(materials):
        try:
            inputs.add(as_log(material, number), number)
        except UserError as error:
            inputs.errors.append(error)
    if len(inputs.logs) > 1:
        inputs.sort()
    return inputs


def _printed_rank(log: Scanned) -> int | None:
    """The rank in the `[rankN]:` prefixes that torch prints, if there is exactly one."""
    ranks = {int(match[1]) for excerpt in log.excerpts for match in _RANK.finditer(excerpt.raw)}
    return ranks.pop() if len(ranks) == 1 else None


def _label(path: str) -> Label:
    """The process that wrote a file, by its path; `job_folder` is loaded only for paths that name one."""
    if not _NAMES_PROCESS.search(path):
        return Label()
    return job_folder.label_of(path)


def _truncate(log: Scanned) -> Scanned:
    """Reduce a log to save memory: to its beginning if it has no message, else by its samples."""
    if any(hit.grammar.endswith("_oom") for hit in log.hits):
        return replace(log, samples=())
    first = log.excerpts[:1]
    return replace(log, samples=(), hits=(), excerpts=tuple(replace(excerpt, raw=excerpt.raw[:QUIET]) for excerpt in first))
