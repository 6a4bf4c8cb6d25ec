"""Puts rules and grammars into the wheel, with what is compiled of them, so that the first run is as fast as the next."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent


class Compile(BuildHookInterface):  # type: ignore[type-arg]
    """Fills diagnose/_shipped: rules/, grammars/, and compiled/ with what diagnose/disk_cache.py would otherwise build on first use."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # a checkout compiles on first use and sees every edit
        self.folder = tempfile.TemporaryDirectory(prefix="oomdoctor-build-")
        compile_into(Path(self.folder.name))
        for room in ("rules", "grammars"):
            build_data["force_include"][str(ROOT / room)] = f"diagnose/_shipped/{room}"
        for file in Path(self.folder.name).rglob("*.*"):
            if file.is_file():
                name = file.name.partition(".")[2]  # without the mark of the checkout
                build_data["force_include"][str(file)] = f"diagnose/_shipped/compiled/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        if version != "editable":
            self.folder.cleanup()


def compile_into(folder: Path) -> None:
    """Lets the package build its tables and parsers with `folder` as its cache."""
    before, written = os.environ.get("XDG_CACHE_HOME"), sys.dont_write_bytecode
    os.environ["XDG_CACHE_HOME"], sys.dont_write_bytecode = str(folder), True
    sys.path.insert(0, str(ROOT))
    try:
        from diagnose import catalogue, rule_files
        from diagnose.adapters.schema import framework_tables
        from diagnose.decide import rule_loader
        from diagnose.parse.facts import projects
        from diagnose.parse.text import lazy_re
        from diagnose.plan.edits import setting_conflicts
        from diagnose.plan.remedies import remedy_rules
        from diagnose.traits import traits_of

        for path in sorted((ROOT / "rules").iterdir()):
            rule_files.table(path.stem)
        for path in sorted(file for room in ("phrases", "models") for file in (ROOT / "rules" / room).glob("*.yaml")):
            rule_files.table(f"{path.parent.name}/{path.stem}")
        for path in sorted((ROOT / "grammars").glob("*.lark")):
            rule_files.parser(path.stem)
        catalogue.model("any")  # builds the index of names
        framework_tables.turned_by("any")  # builds the index of frameworks, their tables and what their keys turn
        for name in framework_tables.names():  # builds the lists of keys
            framework_tables.known(name)
        for build in (rule_loader.rules, remedy_rules.rules, setting_conflicts.kept_comparisons):
            build()
        traits_of("any")
        projects.find(b"any")
        lazy_re.finds("any", "text")  # builds the words of the patterns in tables
    finally:
        sys.path.remove(str(ROOT))
        sys.dont_write_bytecode = written
        if before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = before
