"""Several configs pasted into one field: told apart, each named as the text names it."""

from __future__ import annotations

from diagnose.adapters.documents.open_config import open_document
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.inputs import pasted_page

#: A paste of more bytes is taken as one config.
LARGEST = 1 << 20


def pasted_configs(text: str, name: str) -> list[ConfigSource]:
    """The configs of a paste, in its order. One that reads as a whole stays whole, a script with the files that it writes too."""
    data = text.encode(errors="replace")
    whole = ConfigSource(name, data)
    if len(data) > LARGEST or not text.strip() or not _may_be_several(whole, text):
        return [whole]
    found = pasted_page.configs_of_text(text, name)
    if len(found) < (1 if "```" in text else 2):
        return [whole]
    names: list[str] = []
    for number, source in enumerate(found, 1):
        names.append(source.called if source.called and source.called not in names else f"{name}-{number}")
    return [ConfigSource(called, source.data.lstrip(b"\n")) for called, source in zip(names, found, strict=True)]


def _may_be_several(whole: ConfigSource, text: str) -> bool:
    """Whether it is fenced, cannot be read as one config, or holds further documents, behind a command too."""
    opened = open_document(whole)
    if "```" in text or any(notice.level == "error" or notice.code == "config.several_documents" for notice in opened.notices):
        return True
    return opened.form == "shell" and "<<" not in text and not text.lstrip().startswith("#!")
