"""Builds the site into a folder that any static host serves: `python site/build_site.py [OUT] [--figures FILE] [--no-docs]`.

Home, playground and accuracy page in both languages, the docs by MkDocs Material, the engine (Pyodide, the wheel, its libraries) and a
service worker. Nothing of it refers to another host, and every page carries a policy that says so (`policy`).
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml
from docs_pages import build_docs
from engine_files import build_engine
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from site_parts import HERE, LANGUAGES, PATHS, PYODIDE, ROOT, policy, read

from diagnose.catalogue import card_names
from diagnose.phrases import Lang
from diagnose.pipeline import explain
from diagnose.render.markup import html, page_templates, turned_page
from diagnose.surfaces.what_if.turned_roles import bench
from diagnose.version import __version__

#: The figures of the home page's example: the knob and where its slider stands, last as the job has it.
EXAMPLE, EXAMPLE_KNOB, EXAMPLE_STOPS = "llamafactory-6800", "train.max_seq_len", (1024, 1536, 2048, 2560, 3072, 4096)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", nargs="?", default=str(ROOT / "build" / "site"), type=Path)
    parser.add_argument("--figures", type=Path, help="what benchmarks/accuracy.py printed (default: it is run)")
    parser.add_argument("--no-docs", action="store_true", help="without the docs, which take a minute")
    asked = parser.parse_args()
    out: Path = asked.out.resolve()
    if not PYODIDE.is_dir():
        sys.exit(f"site/build_site.py: {PYODIDE.relative_to(ROOT)} is missing: run `make site`, or `npm ci --ignore-scripts` in site/")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    build_engine(out / "engine")
    build_assets(out / "assets")
    build_pages(out, asked.figures)
    if not asked.no_docs:
        build_docs(out)
    build_worker(out)
    compressed = sum(len(zipped) for zipped in map(gzipped, sorted((out / "engine").iterdir())))
    print(f"{out}: {sum(1 for path in out.rglob('*') if path.is_file())} files; the engine has {compressed / 1e6:.1f} MB compressed")


def gzipped(path: Path) -> bytes:
    return gzip.compress(path.read_bytes(), 9)


# -- shell pages


def build_assets(out: Path) -> None:
    """Scripts as they are; one style sheet for the shell and the answers, with both themes at hand."""
    out.mkdir()
    for name in ("home.js", "play.js", "worker.js", "theme.js", "offline.js", "icon.svg"):
        shutil.copy(HERE / "assets" / name, out)
    tokens = page_templates.asset("tokens.css")
    light, dark = re.findall(r":root\{([^}]*)\}", tokens)
    themes = (
        f"{tokens}:root[data-theme=light]{{{light.replace('light dark', 'light')}}}:root[data-theme=dark]{{color-scheme:dark;{dark}}}\n"
    )
    answers = page_templates.asset(*html.SHEET[1:], *turned_page.SHEET)
    (out / "site.css").write_text(f"{themes}{answers}{(HERE / 'assets' / 'site.css').read_text()}")


def build_pages(out: Path, figures_file: Path | None) -> None:
    texts = read("texts")
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["prose"] = page_templates.prose
    cases = examples()
    shared = {
        "paths": PATHS, "version": __version__, "commit": commit(), "cards": card_names(), "patterns": patterns(),
        "figures": figures(figures_file), "outside": read("outside"), "examples": cases,
        "examples_json": script_json(cases), "texts_json": script_json(texts), "paths_json": script_json(PATHS),
    }  # fmt: skip
    for lang in LANGUAGES:

        def say(key: str, lang: Lang = lang, **values: object) -> str:
            return str(texts[key][lang]).format(**values) if values else str(texts[key][lang])

        for page in ("home", "play", "accuracy", "404"):
            path = PATHS[lang].get(page, "404.html" if lang == "en" else "")
            if not path:
                continue
            file = out / path / "index.html" if path.endswith("/") else out / path
            file.parent.mkdir(parents=True, exist_ok=True)
            depth = len(file.relative_to(out).parts) - 1
            values = {
                **shared, "lang": lang, "other": "zh" if lang == "en" else "en", "page": page if page != "404" else "home", "say": say,
                "root": "../" * depth or "./", "keep": "engine" if page == "play" else "", "policy": policy(wasm=page == "play"),
                "states": example_states(lang) if page == "home" else [],
            }  # fmt: skip
            file.write_text(environment.get_template(f"{page}.html.j2").render(values), encoding="utf-8")
    (out / "manifest.webmanifest").write_text(json.dumps({
        "name": "oomdoctor", "short_name": "oomdoctor", "start_url": "play/", "scope": "./", "display": "standalone",
        "icons": [{"src": "assets/icon.svg", "sizes": "any", "type": "image/svg+xml"}],
    }))  # fmt: skip
    (out / ".nojekyll").touch()  # what begins with an underscore is served too


def script_json(value: object) -> str:
    """JSON that may stand in a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def patterns() -> str:
    """The patterns of bars, once for a page."""
    return str(page_templates.environment().get_template("parts.html.j2").module.patterns())  # type: ignore[attr-defined]


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def figures(file: Path | None) -> dict[str, Any]:
    """What benchmarks/accuracy.py prints, with the day and the commit."""
    if file is not None:
        printed = file.read_text()
    else:
        printed = subprocess.run(
            [sys.executable, str(ROOT / "benchmarks" / "accuracy.py")], capture_output=True, text=True, check=True
        ).stdout
    rows = re.findall(r"^(\S+) +(\d+) of +(\d+) +([\d.]+%)$", printed, re.MULTILINE)
    if not rows:
        sys.exit("site/build_site.py: benchmarks/accuracy.py printed no figures")
    names = ("measure", "right", "of", "share")
    return {"date": datetime.now(UTC).date().isoformat(), "commit": commit(), "rows": [dict(zip(names, row, strict=True)) for row in rows]}


def examples() -> dict[str, Any]:
    """The failures of site/examples.yaml with their files."""
    return {name: example(name, row) for name, row in read("examples").items()}


def example(name: str, row: dict[str, Any]) -> dict[str, Any]:
    folder = ROOT / "corpus" / row.get("folder", name)
    case = yaml.safe_load((folder / "expected.yaml").read_text(encoding="utf-8"))
    given = case.get("inputs", case)
    logs = [given.get("log", "error.log")] if row.get("log", True) else []
    listed = [*((log, "log") for log in logs), *((config, "config") for config in given.get("configs", []))]
    files = [{"name": file, "kind": kind, "text": (folder / file).read_bytes().decode()} for file, kind in listed]
    options = row.get("options", given.get("options", {}))
    return {"title": row["title"], "files": files, "options": options}


def example_states(lang: Lang) -> list[dict[str, str]]:
    """The home page's example at each stop of its slider."""
    case = example(EXAMPLE, {"title": ""})
    folder = ROOT / "corpus" / EXAMPLE
    files = {kind: [folder / file["name"] for file in case["files"] if file["kind"] == kind] for kind in ("log", "config")}
    turning = bench(explain(files["log"], configs=files["config"]))
    return [
        {"value": f"{stop:,}", "html": turned_page.turned(turning.turn({} if stop == EXAMPLE_STOPS[-1] else {EXAMPLE_KNOB: stop}), lang)}
        for stop in EXAMPLE_STOPS
    ]


# -- offline


def build_worker(out: Path) -> None:
    """The service worker, with the files of each set and a version that changes when any of them does."""
    files = sorted(path for path in out.rglob("*") if path.is_file() and path.name != ".nojekyll")
    sets: dict[str, list[str]] = {"shell": [], "engine": [], "docs": []}
    digest = sha256()
    for path in files:
        place = path.relative_to(out).as_posix()
        digest.update(place.encode() + path.read_bytes())
        kind = "engine" if place.startswith("engine/") else "docs" if re.match(r"(zh/)?docs/", place) else "shell"
        if not place.endswith(".map"):
            sets[kind].append(place)
    text = (HERE / "assets" / "sw.js").read_text()
    text = text.replace("{{version}}", digest.hexdigest()[:12]).replace("{{files}}", json.dumps(sets, separators=(",", ":")))
    (out / "sw.js").write_text(text)


if __name__ == "__main__":
    main()
