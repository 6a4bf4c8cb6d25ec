"""Environment variables as the shell of this job sets them: `export` where nothing says that it runs on Windows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from diagnose.diagnosis import Diagnosis

#: A path with a drive, as Windows prints it in a traceback; the prompt of its newer shell.
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_PROMPT = re.compile(r"\bPS [A-Za-z]:\\[^>]{0,300}>")

#: How each shell sets NAME to VALUE. Where only Windows is known it is both: the one says nothing to the other's shell.
_FORMS = {
    "bash": ("export {name}={value}",),
    "cmd": ("set {name}={value}",),
    "powershell": ('$env:{name} = "{value}"',),
    "windows": ("set {name}={value}", '$env:{name} = "{value}"  # PowerShell'),
}


#: What a code block in each is called.
BLOCKS = {"bash": "bash", "cmd": "bat", "powershell": "powershell", "windows": "powershell"}


def shell_lines(variables: Sequence[str], diagnosis: Diagnosis) -> list[str]:
    """What to type for each NAME=VALUE."""
    if not variables:
        return []
    pairs = [variable.partition("=") for variable in variables]
    forms = _FORMS[shell(diagnosis)]
    return [form.format(name=name, value=value) for form in forms for name, _, value in pairs]


def shell(diagnosis: Diagnosis) -> str:
    """bash, cmd, powershell; windows where it may be either of these. The launch script says it, else the traceback."""
    from diagnose.adapters.shell.shell_text import dialect_of

    script = next((document for document in diagnosis.documents if document.form == "shell" and not document.outer), None)
    if script is not None:
        return dialect_of(script.text)
    if any(map(_PROMPT.search, quoted_lines(diagnosis))):
        return "powershell"
    if not any(_DRIVE.match(frame.file) for event in diagnosis.events for frame in event.frames):
        return "bash"  # the driver of Windows alone says nothing: it serves Linux inside Windows too
    utf16 = any(source.encoding.lower().startswith("utf-16") for source in diagnosis.inputs if source.kind == "log")
    return "powershell" if utf16 else "windows"  # its `>` writes UTF-16


def quoted_lines(diagnosis: Diagnosis) -> Iterable[str]:
    """The lines of the log that were quoted as evidence."""
    return (fact.witness.text for fact in diagnosis.facts if fact.origin == "log")
