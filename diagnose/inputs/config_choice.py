"""Which of the configs that nobody named count: those that lay beside the logs, or inside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from diagnose.adapters.documents.open_config import open_document
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.facts import Notice, Witness
from diagnose.inputs import pasted_configs
from diagnose.inputs.given import Material, as_config, each
from diagnose.parse.model.reading import Reading
from diagnose.phrases import phrase
from diagnose.scan import job_folder


def that_count(
    given: Sequence[Material | ConfigSource], found: Sequence[ConfigSource], reading: Reading
) -> tuple[list[ConfigSource], list[Notice]]:
    """The configs that lay beside the logs or inside them and count: those that adapters know, one of a kind, and none of a kind
    that was given. Of several the one that something else names comes first."""
    known = [open_document(source) for source in found]
    known = [one for one in known if pasted_configs.is_config(one)]
    if len(known) > job_folder.CONFIGS:
        message = phrase("folder.many_configs", name=str(Path(known[0].source.name).parent), count=len(known))
        return [], [Notice("warning", "many_configs", message)]
    sources, _ = each(as_config, [one for one in given if isinstance(one, (Path, ConfigSource, str, bytes))])
    taken = {open_document(source).kind for source in sources}
    texts = (
        [command.text for command in reading.commands] + [one.text for one in known] + [open_document(source).text for source in sources]
    )
    known.sort(key=lambda one: not any(Path(one.source.name).name in text for text in texts))
    kept: list[ConfigSource] = []
    notices: list[Notice] = []
    for one in known:
        if one.kind in taken:
            message = phrase("folder.same_kind", name=one.source.name, kind=one.kind)
            notices.append(Notice("info", "config_not_used", message, Witness(one.source.name)))
        else:
            kept.append(one.source)
        taken.add(one.kind)
    return kept, notices
