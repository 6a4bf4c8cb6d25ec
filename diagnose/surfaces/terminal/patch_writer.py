"""Write the plan of a diagnosis as a unified diff, or apply it to the config files, in the encoding of each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from diagnose.adapters.documents import open_config
from diagnose.adapters.formats.settings import Document
from diagnose.diagnosis import Diagnosis
from diagnose.phrases import Lang, phrase
from diagnose.plan.patch import patching
from diagnose.render.parts.advice_text import release_notes
from diagnose.render.parts.strings import visible
from diagnose.surfaces.terminal import console
from diagnose.surfaces.terminal.console import trouble
from diagnose.surfaces.terminal.safe_replace import OldFile, read_file, replace_files
from diagnose.whole_file import draft

#: By this line a diff of ours is known, in its first characters.
DIFF_SIGN, DIFF_HEAD = re.compile(rb'^--- "?a/', re.MULTILINE), 4096


@dataclass(slots=True)
class Target:
    """A config that the plan changes: its text before and after, and the file with it (None: it came from standard input)."""

    document: Document
    old: str
    new: str
    file: OldFile | None
    encoding: str = "utf-8"

    def encode(self, text: str) -> bytes:
        return text.encode(self.encoding, "surrogateescape" if self.encoding == "utf-8" else "strict")


def write(diagnosis: Diagnosis, configs: Sequence[str], patch: str | None, apply: bool, lang: Lang) -> bool:
    """Write the plan as a diff to `patch` ("-": standard output) and, if `apply`, into the files named in `configs`; whether these changed.

    Raises UserError where a file cannot be written; then none of the configs has changed.
    """
    plan = diagnosis.outcome.plan
    edits = plan.edits if plan is not None else ()
    paths = {Path(name) for spec in configs for name in (spec, spec.partition("=")[2]) if name}
    targets = find_targets(diagnosis.documents, patching.texts(diagnosis.documents, edits), paths, strict=apply)
    writable = [target for target in targets if target.file is not None]
    if not targets:
        console.warn(phrase("cli.nothing_to_patch").to(lang))
        return False
    notes = release_notes([edit for edit in edits if edit.target in {target.document.name for target in targets}], lang)
    if patch is not None:
        data = build_diff(targets, notes, lang)
        if patch == "-":
            write_to_output(data)
        elif data:
            write_diff(Path(patch), data, paths, lang)
    if apply and writable:
        apply_targets(writable, lang)
        for note in notes:
            console.warn(note)
        return True
    if apply:
        console.warn(phrase("cli.nothing_to_apply").to(lang))
    return False


def find_targets(documents: Sequence[Document], texts: Mapping[str, str], paths: set[Path], strict: bool) -> list[Target]:
    """The documents that the plan changes. A file is opened only if the user named it (`paths`). `strict`: it will be written, so it may be
    no link; else links are followed, and what can be read only once (a pipe) is taken as it was read.

    Raises UserError where a file is not as it was when it was diagnosed, or its encoding cannot be written back.
    """
    targets = []
    for name, new in texts.items():
        document = next(document for document in documents if document.name == name and document.form != "command")
        old = document.outer or document.text
        if new == old:
            continue
        target = Target(document, old, new, None)
        path = Path(name) if strict else Path(name).resolve()
        if Path(name) in paths and (strict or path.is_file()):
            try:
                target.file = read_file(path)
            except OSError as error:
                raise trouble("unreadable_now", where=name, hint="try_again", why=error.strerror or str(error)) from error
            target.encoding = find_encoding(target)
        targets.append(target)
    return targets


def find_encoding(target: Target) -> str:
    """The codec that turns the text as it was read into the bytes of the file."""
    data = target.file.data if target.file is not None else b""
    text, encoding, _ = open_config.decode(data)
    if text != target.old:
        raise trouble("changed_meanwhile", where=target.document.name, hint="try_again")
    candidates = {"utf-8": ("utf-8", "utf-8-sig"), "utf-16": ("utf-16-le", "utf-16-be")}.get(encoding, (encoding,))
    if encoding == "utf-16":
        target.old, target.new = f"\ufeff{target.old}", f"\ufeff{target.new}"
    for candidate in candidates:
        target.encoding = candidate
        try:
            if target.encode(target.old) == data and target.encode(target.new):
                return candidate
        except UnicodeError:
            continue
    raise trouble("encoding", where=target.document.name, hint="to_utf8", encoding=encoding)


# -- diffs


def build_diff(targets: Sequence[Target], notes: Sequence[str], lang: Lang) -> bytes:
    """One diff for `patch -p1` and `git apply`, which run where its paths begin: in the current folder, or where all the files lie if
    one of them is outside. `notes` stand above it, where the tools skip them. A file in UTF-16 is left out with a sentence: the tools
    read lines of bytes."""
    visible_targets = []
    for target in targets:
        if target.encoding.startswith("utf-16"):
            console.warn(phrase("cli.no_utf16_diff", file=target.document.name).to(lang))
        else:
            visible_targets.append(target)
    folder, labels = diff_labels([target.document.name for target in visible_targets if target.file is not None])
    places = [] if folder is None else [phrase("cli.patch_folder", folder=folder).to(lang)]
    head = "".join(f"# {line}\n" for line in (*places, *notes)).encode(errors="surrogateescape")
    diffs = []
    for target in visible_targets:
        bom = "\ufeff" if target.encoding == "utf-8-sig" else ""
        label = labels.get(target.document.name, target.document.name.lstrip("/"))
        text = patching.unified_diff(label, bom + target.old, bom + target.new)
        diffs.append(
            text.encode(target.encoding.removesuffix("-sig"), "surrogateescape" if target.encoding.startswith("utf-8") else "replace")
        )
    return head + b"".join(diffs) if diffs else b""


def diff_labels(names: Sequence[str]) -> tuple[str | None, dict[str, str]]:
    """The folder in which a diff over these files applies (None: the current one), and each file's path from there."""
    here = Path.cwd()
    absolute = {name: Path(os.path.abspath(name)) for name in names}  # noqa: PTH100 - without following links
    if all(path.is_relative_to(here) for path in absolute.values()):
        return None, {name: path.relative_to(here).as_posix() for name, path in absolute.items()}
    folder = Path(os.path.commonpath([path.parent for path in absolute.values()]))
    return str(folder), {name: path.relative_to(folder).as_posix() for name, path in absolute.items()}


def write_to_output(data: bytes) -> None:
    """Print a diff: harmless on a terminal, to the byte into a pipe."""
    if sys.stdout.isatty():
        console.say(visible(data.decode("utf-8", "replace")))
    else:
        console.say(data)


def write_diff(path: Path, data: bytes, configs: set[Path], lang: Lang) -> None:
    """Write a diff to a file, which may replace an older diff and nothing else."""
    with console.write_errors(str(path)):
        if path.exists():
            if any(config.exists() and path.samefile(config) for config in configs):
                raise trouble("patch_is_config", where=str(path), hint="other_patch_name")
            start = path.read_bytes()[:DIFF_HEAD] if path.is_file() else b""
            if start and not DIFF_SIGN.search(start):
                raise trouble("patch_over_other", where=str(path), hint="other_patch_name")
        with draft(path) as beside:
            beside.write_bytes(data)
    console.warn(phrase("cli.patch_written", file=path).to(lang))


# -- applying


def is_accepted(command: str, lang: Lang) -> bool:
    """Run the user's own check of the changed files, a dry run of their trainer; whether it ended well. What it prints goes to standard
    error, since the answer stands on standard output."""
    run = subprocess.run(command, shell=True, stdin=subprocess.DEVNULL, stdout=2, check=False)  # noqa: S602 - the user's own words
    status = run.returncode
    name = "cli.check_passed" if status == 0 else "cli.check_failed"
    console.warn(phrase(name, command=command, status=str(status)).to(lang))
    return status == 0


def apply_targets(targets: Sequence[Target], lang: Lang) -> None:
    """Change the files, all or none, and say where the old content of each is."""
    changes = [(target.file, target.encode(target.new)) for target in targets if target.file is not None]
    for replaced in replace_files(changes):
        console.warn(phrase("cli.applied", file=replaced.path, orig=replaced.original.name).to(lang))
        if replaced.has_other_names:
            console.warn(phrase("cli.other_names", file=replaced.path).to(lang))
