"""All that the logs of one job come with: files, folders and archives read in one go, and what lies in them beside logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from diagnose.adapters.formats.settings import MAX_READ_BYTES, ConfigSource
from diagnose.errors import UserError
from diagnose.facts import Notice, Witness
from diagnose.inputs.given import as_log
from diagnose.packed import unpack_limits, unpacking
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.phrases import phrase
from diagnose.record import field, record, replace
from diagnose.scan import log_scan
from diagnose.scan.source import Label, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from diagnose.facts import Input
    from diagnose.inputs.given import Material
    from diagnose.parse.model.reading import Dump, Reading
    from diagnose.scan.log_scan import Scanned

KEPT = 64 << 20  # bytes of excerpts that all logs together may keep before quiet logs are thinned out
QUIET = 16 << 10  # what is kept then of a log without a message

#: Without any of these nobody but a program wrote a text (diagnose/inputs/pasted_configs.py looks closer).
_SIGNS = frozenset(
    (
        *(b"```", b"~~~", b"<details", b"<summary", b"\n# ", b"\n## ", b"\n### ", b"> #"),
        *(b" I ", b"I'm ", b"I've ", b"\nI ", b" my ", b"\nmy ", b"My ", b"ere is ", b"ere are ", b"hanks"),
        *(
            word.encode()
            for word in ("：\n", "如下", "请问", "请教", "求助", "大佬", "大家好", "谢谢", "为什么", "我的", "我用", "我在", "我们")
        ),
    )
)
#: The same at the very start, or a command.
_BEGINNINGS = (b"#", b"I ", b"my ", b"torchrun ", b"deepspeed ", b"accelerate launch ", b"python", b"CUDA_VISIBLE_DEVICES=")
_RANK = lazy_compile(rb"(?:^|\n)\[rank(\d{1,6})\]:")
_SAYS = lazy_compile(r"(?i)rank|node|attempt|restart|worker-|_[0-9a-f]{8}")
#: What the notes of an input mean to its reader.
_NOTES = {"damaged": "packed.damaged", "expands": "packed.expanding"}


@record(frozen=False, eq=False)
class Gathered:
    """What one job left: its logs as they were scanned, configs beside them, records of the run, and what could not be read."""

    scanned: list[Scanned] = field(default_factory=list)
    configs: list[ConfigSource] = field(default_factory=list)
    records: list[Source] = field(default_factory=list)
    unread: list[UserError] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    allowance: unpack_limits.Allowance = field(default_factory=unpack_limits.Allowance)
    _order: list[tuple[int, str]] = field(default_factory=list)
    _kept: int = 0

    # -- one input after the other

    def add(self, source: Source, number: int) -> None:
        """Read one input that was given: a file, a folder, or an archive."""
        if source.path is not None and source.path.is_dir():
            self._folder(source, source.path, number)
            return
        if source.path is not None or source.opener is not None:  # the folders that a launcher makes stand at the end of a path
            source = replace(source, label=_label("/".join(source.name.replace("\\", "/").split("/")[-4:])))
        start = len(self.scanned), len(self.unread)
        places: list[str] = []
        piece = None
        try:
            for piece in unpacking.contents(source, self.allowance):
                if isinstance(piece, UserError):
                    self.unread.append(piece)
                elif not piece.place:
                    self._log(piece, number)
                else:
                    places.append(piece.place)
                    self._member(piece, number)
        except UserError as trouble:
            self.unread.append(trouble)
        if places or piece is None:
            self._settle(source.name, places, start, number)

    def _folder(self, source: Source, top: Path, number: int) -> None:
        from diagnose.scan import job_folder

        start = len(self.scanned), len(self.unread)
        try:
            files = job_folder.walk(top)
        except UserError as trouble:
            self.unread.append(trouble)
            return
        late = job_folder.older([place for place, _ in files])
        for place, path in files:
            if place not in late:
                self._file(Source(str(Path(source.name) / place), path=path, place=place), number)
        self._settle(source.name, [place for place, _ in files], start, number)

    def _file(self, source: Source, number: int) -> None:
        """A file of a folder, by what its path says that it is."""
        from diagnose.scan import job_folder

        kind = job_folder.kind_of(source.place)
        if kind == "none":
            return
        if kind == "config":
            self._config(source)
            return
        try:
            for piece in unpacking.contents(source, self.allowance):
                if isinstance(piece, UserError):
                    self.unread.append(piece)
                elif piece.place == source.place:
                    self._one(piece, kind, number)
                else:
                    self._member(replace(piece, place=f"{source.place}/{piece.place}"), number)
        except UserError as trouble:
            self.unread.append(trouble)

    def _member(self, source: Source, number: int) -> None:
        """A file of an archive. It may be compressed itself; an archive in it is not opened."""
        from diagnose.scan import job_folder

        kind = job_folder.kind_of(source.place)
        if kind == "none":
            return
        if kind == "config":
            self._config(source)
            return
        for piece in unpacking.contents(source, self.allowance, nested=True):
            if isinstance(piece, UserError):
                self.unread.append(piece)
            else:
                self._one(piece, kind, number)

    def _one(self, source: Source, kind: str, number: int) -> None:
        if kind == "metadata":
            self.records.append(replace(source, data=source.read(MAX_READ_BYTES), opened=None))
        elif kind == "log":
            self._log(source, number)

    def _log(self, source: Source, number: int) -> None:
        if self.scanned and self._is_full():
            return
        try:
            one = log_scan.scan(replace(source, label=_label(source.place)) if source.place else source)
        except UserError as trouble:
            self.unread.append(trouble)
            return
        if "damaged" in one.input.notes and not one.input.bytes:
            self.unread.append(unpack_limits.trouble("nothing_left", source.name, hint="copy_again"))
            return
        self._kept += sum(len(excerpt.raw) for excerpt in (*one.excerpts, *one.samples))
        self.scanned.append(_thinned(one) if self._kept > KEPT else one)
        self._order.append((number, source.place))
        for note, text in _NOTES.items():
            if note in one.input.notes:
                message = phrase(text, name=source.name, bytes=one.input.bytes)
                self.notices.append(Notice("warning", f"input_{note}", message, Witness(source.name, one.input.lines)))

    def _is_full(self) -> bool:
        """Whether there are more logs than one job has; said once."""
        from diagnose.scan import job_folder

        if len(self.scanned) < job_folder.LOGS:
            return False
        trouble = job_folder.trouble("too_many_logs", "", "name_the_logs", most=job_folder.LOGS)
        if all(one.what != trouble.what for one in self.unread):
            self.unread.append(trouble)
        return True

    def _config(self, source: Source) -> None:
        from diagnose.scan import job_folder

        data = source.read(job_folder.CONFIG + 1)
        if len(data) <= job_folder.CONFIG:
            self.configs.append(ConfigSource(source.name, data))

    def _settle(self, name: str, places: Sequence[str], start: tuple[int, int], number: int) -> None:
        """When a folder or an archive was read to its end: which runs are meant, whose ranks are whose, and whether there was a log."""
        from diagnose.scan import job_folder

        late = job_folder.older(places)
        if late:
            self.notices.append(Notice("info", "older_runs", phrase("folder.older", name=name, count=len(late))))
            prefix = len(name) + 1
            keep = [at for at, (of, place) in enumerate(self._order) if of != number or place not in late]
            self.scanned = [self.scanned[at] for at in keep]
            self._order = [self._order[at] for at in keep]
            self.configs = [one for one in self.configs if one.name[prefix:] not in late]
            self.records = [one for one in self.records if one.place not in late]
        mine = [at for at, (of, place) in enumerate(self._order) if of == number and place]
        labels = job_folder.with_ranks({self._order[at][1]: (self.scanned[at].label, _printed_rank(self.scanned[at])) for at in mine})
        for at in mine:
            self.scanned[at] = replace(self.scanned[at], label=labels[self._order[at][1]])
        if len(self.scanned) == start[0] and len(self.unread) == start[1]:
            self.unread.append(job_folder.trouble("no_log", name, "name_the_log"))

    def in_order(self) -> None:
        """Earlier attempts first; then as given, and by name within a folder or an archive."""
        from diagnose.scan import job_folder

        def key(at: int) -> tuple[object, ...]:
            number, place = self._order[at]
            return self.scanned[at].label.attempt or 1, number, job_folder.natural(place)

        order = sorted(range(len(self.scanned)), key=key)
        self.scanned = [self.scanned[at] for at in order]
        self._order = [self._order[at] for at in order]

    def pasted(self) -> None:
        """Take the configs that stand in the logs, where a person wrote one."""
        for one in self.scanned:
            if any(excerpt.spots.among(_SIGNS) for excerpt in one.excerpts) or any(
                excerpt.raw.startswith(_BEGINNINGS) for excerpt in one.excerpts[:1]
            ):
                from diagnose.inputs import pasted_configs

                self.configs += pasted_configs.configs(one)

    # -- what it means for the diagnosis

    def enriched(self, reading: Reading) -> Reading:
        """The reading with what wandb wrote down, and with notices on how the logs could be read."""
        if not self.records and not self.configs:
            return replace(reading, notices=(*reading.notices, *self.notices))
        from diagnose.inputs import wandb_files

        self.configs, inputs, settings = recorded(self.configs)
        machines = [wandb_files.metadata(record.name, record.data or b"") for record in self.records]
        dumps = [*settings, *(dump for _, _, dump in machines if dump is not None)]
        return replace(
            reading,
            inputs=(*reading.inputs, *inputs, *(about for about, _, _ in machines)),
            facts=(*reading.facts, *(fact for _, facts, _ in machines for fact in facts)),
            dumps=(*reading.dumps, *wandb_files.joined(dumps)),
            notices=(*reading.notices, *self.notices),
        )


def recorded(sources: Sequence[ConfigSource]) -> tuple[list[ConfigSource], list[Input], list[Dump]]:
    """The configs, and apart from them what wandb wrote down of settings in effect, wherever it was given."""
    if not any(b"wandb" in one.data for one in sources):
        return list(sources), [], []
    from diagnose.inputs import wandb_files

    return wandb_files.apart(sources)


def job(materials: Iterable[Material]) -> Gathered:
    """Read what was given as one job. What cannot be read is a complaint beside the rest."""
    gathered = Gathered()
    for number, material in enumerate(materials):
        try:
            gathered.add(as_log(material, number), number)
        except UserError as trouble:
            gathered.unread.append(trouble)
    if len(gathered.scanned) > 1:
        gathered.in_order()
    return gathered


def _printed_rank(one: Scanned) -> int | None:
    """The rank that torch puts before the lines of a process, where that is one only."""
    found = {int(match[1]) for excerpt in one.excerpts for match in _RANK.finditer(excerpt.raw)}
    return found.pop() if len(found) == 1 else None


def _label(place: str) -> Label:
    """Which process wrote a file, by its place; most names say nothing, and then nothing is loaded to find that out."""
    if not _SAYS.search(place):
        return Label()
    from diagnose.scan import job_folder

    return job_folder.label_of(place)


def _thinned(one: Scanned) -> Scanned:
    """A log without any message, as one of very many: its beginning."""
    if any(hit.grammar.endswith("_oom") for hit in one.hits):
        return replace(one, samples=())
    first = one.excerpts[:1]
    return replace(one, samples=(), hits=(), excerpts=tuple(replace(excerpt, raw=excerpt.raw[:QUIET]) for excerpt in first))
