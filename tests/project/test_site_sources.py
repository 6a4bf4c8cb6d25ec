"""What the site is made of, as far as it can be looked at without building it (`make test-site` does)."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import yaml
from checkout import ROOT

SITE = ROOT / "site"


def test_every_text_of_the_site_is_there_in_both_languages() -> None:
    """A comma in an unquoted text would end it and begin another key."""
    for name in ("texts", "examples"):
        for key, row in yaml.load((SITE / f"{name}.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader).items():
            text = row.get("title", row)
            assert set(text) == {"en", "zh"} and all(text.values()), f"{name}.yaml: {key}"


def test_every_text_that_a_page_asks_for_is_there() -> None:
    texts = yaml.load((SITE / "texts.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
    asked = {
        key
        for file in (*(SITE / "templates").glob("*.j2"), SITE / "assets" / "play.js")
        for key in re.findall(r"""\bsay\(["'](\w+)["'][,)]|data-t(?:-placeholder)?="(\w+)\"""", file.read_text(encoding="utf-8"))
        for key in key
        if key
    }
    assert len(asked) > 40 and not asked - set(texts)


def test_no_source_of_the_site_names_another_host() -> None:
    """What a page loads is the site's own."""
    for file in (*(SITE / "assets").iterdir(), *(SITE / "templates").iterdir(), SITE / "mkdocs.yaml"):
        assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)\S+", file.read_text(encoding="utf-8")), file.name


def test_the_job_of_a_page_loads_nothing_that_a_browser_lacks() -> None:
    """Processes, sockets, threads and their clocks, what the engine leaves out: a reader of snapshots once kept it from starting."""
    code = "import sys; import diagnose.surfaces.playground.session; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    outside = ("diagnose.snapshot", "diagnose.cluster", "diagnose.live", "diagnose.vet", "pydantic", "typer", "subprocess", "socket")
    assert not [name for name in done.stdout.split() if name.startswith(outside)]


def test_packages_are_pinned_by_hash_and_no_registry_is_named() -> None:
    lock = json.loads((SITE / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert "node_modules/pyodide" in packages
    assert all(entry["integrity"].startswith("sha512-") and "resolved" not in entry for entry in packages.values())
