"""The engine of the playground: Pyodide, the wheel's package and its libraries."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from pathlib import Path

import jinja2
import markupsafe
import yaml
from site_parts import HERE, PYODIDE, ROOT, run

#: What the engine has of Pyodide.
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
#: What it lacks of the wheel: rules beside what is compiled of them, what starts processes, opens sockets or reads many jobs.
LEFT_OUT = ("_shipped/rules/", "cluster/", "live/", "surfaces/bots/", "surfaces/cli/", "surfaces/run/", "vet/")


def build_engine(out: Path) -> None:
    """Pyodide, and one archive with the package, its rules and its libraries, compiled for the Python that Pyodide is."""
    out.mkdir()
    for name in RUNTIME:
        shutil.copy(PYODIDE / name, out)
    lock = json.loads((PYODIDE / "pyodide-lock.json").read_text())
    (out / "pyodide-lock.json").write_text(json.dumps({**lock, "packages": {}}))  # nothing is loaded from elsewhere
    unpacked = ROOT / "build" / "engine"
    shutil.rmtree(unpacked, ignore_errors=True)
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(unpacked / "wheel"), str(ROOT))
    source = unpacked / "source"
    with zipfile.ZipFile(next((unpacked / "wheel").glob("*.whl"))) as wheel:
        wheel.extractall(source, members=[name for name in wheel.namelist() if belongs(name)])
    for library in (yaml, jinja2, markupsafe):
        folder = Path(str(library.__file__)).parent
        shutil.copytree(
            folder, source / folder.name, ignore=shutil.ignore_patterns("*.so", "*.pyd", "*.c", "*.pyi", "__pycache__", "py.typed")
        )
    run("node", str(HERE / "engine.mjs"), str(PYODIDE), str(source), str(out / "engine.zip"))


def belongs(name: str) -> bool:
    """Whether the engine has a file of the wheel."""
    package, _, inside = name.partition("/")
    return package == "diagnose" and not inside.startswith(LEFT_OUT)
