"""Tells a config from a log among the files that a person hands over."""

from __future__ import annotations

from diagnose.adapters.documents.open_config import open_document
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.inputs.pasted_page import is_config
from diagnose.scan import memory_words

#: Suffixes of the file names of configs; a file larger than so many bytes is not one.
CONFIG_SUFFIXES = (".yaml", ".yml", ".json", ".toml", ".sh", ".bash", ".slurm", ".sbatch", ".py")
MAX_CONFIG_BYTES = 4 << 20


def is_config_file(name: str, data: str | bytes) -> bool:
    """Whether an attached file is a config: its name says so, and it parses as one or holds no words of a memory failure."""
    if not name.lower().endswith(CONFIG_SUFFIXES) or len(data) > MAX_CONFIG_BYTES:
        return False
    content = data if isinstance(data, bytes) else data.encode(errors="replace")
    return not any(True for _ in memory_words.anchors(core=True).find(memoryview(content))) or configures(name, content)


def configures(name: str, data: bytes) -> bool:
    """Whether a file reads as the config of a run, whatever it is called."""
    return is_config(open_document(ConfigSource(name, data)))
