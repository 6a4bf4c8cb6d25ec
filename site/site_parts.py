"""What the parts of the site share: where things lie, what a page may do, how a program is run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from diagnose.phrases import Lang

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PYODIDE = HERE / "node_modules" / "pyodide"
LANGUAGES: tuple[Lang, ...] = ("en", "zh")

#: The pages by language, relative to the root of the site.
PATHS: dict[Lang, dict[str, str]] = {
    "en": {"home": "./", "play": "play/", "accuracy": "accuracy/", "docs": "docs/", "start": "docs/"},
    "zh": {"home": "zh/", "play": "zh/play/", "accuracy": "zh/accuracy/", "docs": "zh/docs/", "start": "zh/docs/guide/start/"},
}


def policy(*, wasm: bool = False, scripts: tuple[str, ...] = (), styles: str = "'self'") -> str:
    """What a page may do: only what this site itself serves. `scripts`: hashes of inline scripts."""
    allowed = " ".join(["'self'", *(["'wasm-unsafe-eval'"] if wasm else []), *scripts])
    worker = "'self' blob:" if wasm else "'self'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src {styles}; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
        f"worker-src {worker}; manifest-src 'self'; base-uri 'self'; form-action 'none'"
    )


def read(name: str) -> Any:
    """A YAML file of this folder."""
    return yaml.safe_load((HERE / f"{name}.yaml").read_text(encoding="utf-8"))


def run(*command: str) -> None:
    """Run a program; its output is shown if it fails, which ends the build."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"site: {command[0]} failed\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
