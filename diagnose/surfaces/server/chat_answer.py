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
from diagnose.surfaces.server.question import Answer, Question, diagnose_question

if TYPE_CHECKING:
    from diagnose.diagnosis import Diagnosis

#: The beginning of Question.form; the platform follows.
FORM = "chat."
#: Names that configs have; what is larger, in bytes, is none.
CONFIG_SUFFIXES = (".yaml", ".yml", ".json", ".toml", ".sh", ".bash", ".slurm", ".sbatch", ".py")
MAX_CONFIG_BYTES = 4 << 20
#: Characters of a headline in a notification.
MAX_TITLE = 200


def answer_chat(question: Question) -> Answer:
    """The message, and `data`: whether it is worth saying, its headline and the patch. Files that are configs are told from logs here."""
    sorted_question = separate_configs(question)
    diagnosis = diagnose_question(sorted_question)
    platform = cast("Platform", question.form.removeprefix(FORM))
    message = chat(diagnosis, platform, question.lang, redact=False)  # masked already, where it is to be
    headline = diagnosis.verdict.headline.to(question.lang)[:MAX_TITLE]
    data = {"speaks": relevance(diagnosis), "title": dialect(platform).shown(headline), "patch": message.patch}
    return Answer(data=json.dumps(data, ensure_ascii=False), page=message.text)


def relevance(diagnosis: Diagnosis) -> str:
    """`oom`: a failure of memory, or an answer about configs; `other`: a failure that only looks like one; `nothing`: neither."""
    if diagnosis.asked == "check":
        return "nothing" if diagnosis.fits == "unknown" else "oom"
    return {"oom": "oom", "suspected": "oom", "lookalike": "other"}.get(diagnosis.verdict.status, "nothing")


def separate_configs(question: Question) -> Question:
    """The same question with the configs among its files where they belong."""
    configs = [file for file in question.logs if is_config_file(*file)]
    if not configs:
        return question
    return replace(question, logs=tuple(file for file in question.logs if file not in configs), configs=(*question.configs, *configs))


def is_config_file(name: str, data: str | bytes) -> bool:
    """Whether an attached file is a config: named like one, and either understood as one or without a word of a failure."""
    if not name.lower().endswith(CONFIG_SUFFIXES) or len(data) > MAX_CONFIG_BYTES:
        return False
    content = data if isinstance(data, bytes) else data.encode(errors="replace")
    return not any(True for _ in memory_words.anchors(core=True).find(memoryview(content))) or is_config(
        opened(ConfigSource(name, content))
    )
