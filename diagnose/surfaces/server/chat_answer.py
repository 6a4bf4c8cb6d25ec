"""What a worker process answers to a chat: a message of the platform, and the patch beside it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from diagnose.adapters.documents.open_config import opened
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.inputs.pasted_configs import is_config
from diagnose.record import replace
from diagnose.render.markup.chat_message import Platform, chat, dialect
from diagnose.scan import memory_words
from diagnose.surfaces.server.question import Answer, Question, diagnosed

if TYPE_CHECKING:
    from diagnose.diagnosis import Diagnosis

#: The beginning of Question.form; the platform follows.
FORM = "chat."
#: Names that configs have; what is larger, in bytes, is none.
CONFIGS = (".yaml", ".yml", ".json", ".toml", ".sh", ".bash", ".slurm", ".sbatch", ".py")
LARGEST = 4 << 20
#: Characters of a headline in a notification.
TITLE = 200


def spoken(asked: Question) -> Answer:
    """The message, and `data`: whether it is worth saying, its headline and the patch. Files that are configs are told from logs here."""
    sorted_out = parted(asked)
    found = diagnosed(sorted_out)
    platform = cast("Platform", asked.form.removeprefix(FORM))
    message = chat(found, platform, asked.lang, redact=False)  # masked already, where it is to be
    headline = found.verdict.headline.to(asked.lang)[:TITLE]
    data = {"speaks": speaks(found), "title": dialect(platform).escape(headline), "patch": message.patch}
    return Answer(data=json.dumps(data, ensure_ascii=False), page=message.text)


def speaks(found: Diagnosis) -> str:
    """`oom`: a failure of memory, or an answer about configs; `other`: a failure that only looks like one; `nothing`: neither."""
    if found.asked == "check":
        return "nothing" if found.fits == "unknown" else "oom"
    return {"oom": "oom", "suspected": "oom", "lookalike": "other"}.get(found.verdict.status, "nothing")


def parted(asked: Question) -> Question:
    """The same question with the configs among its files where they belong."""
    configs = [one for one in asked.logs if configures(*one)]
    if not configs:
        return asked
    return replace(asked, logs=tuple(one for one in asked.logs if one not in configs), configs=(*asked.configs, *configs))


def configures(name: str, data: str | bytes) -> bool:
    """Whether an attached file is a config: named like one, and either understood as one or without a word of a failure."""
    if not name.lower().endswith(CONFIGS) or len(data) > LARGEST:
        return False
    held = data if isinstance(data, bytes) else data.encode(errors="replace")
    return not any(True for _ in memory_words.anchors(core=True).find(memoryview(held))) or is_config(opened(ConfigSource(name, held)))
