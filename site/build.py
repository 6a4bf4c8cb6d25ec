"""Builds the site into a folder that any static host serves: `python site/build.py [OUT] [--figures FILE] [--no-docs]`.

Home, playground and accuracy page in both languages, the docs by MkDocs Material, the engine (Pyodide, the wheel, its libraries) and a
service worker. Nothing of it refers to another host, and every page carries a policy that says so (`policy`).
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import zipfile
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jinja2
import markupsafe
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from diagnose.catalogue import card_names
from diagnose.phrases import Lang
from diagnose.pipeline import explain
from diagnose.render.markup import html, page_templates, turned_page
from diagnose.surfaces.playground.what_if_command import bench
from diagnose.version import __version__

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PYODIDE = HERE / "node_modules" / "pyodide"
LANGUAGES: tuple[Lang, ...] = ("en", "zh")

#: The pages by language, relative to the root of the site.
PATHS = {
    "en": {"home": "./", "play": "play/", "accuracy": "accuracy/", "docs": "docs/"},
    "zh": {"home": "zh/", "play": "zh/play/", "accuracy": "zh/accuracy/", "docs": "zh/docs/"},
}

#: What the engine has of Pyodide, and of the wheel: not what starts processes, opens sockets or reads many jobs.
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
LEFT_OUT = ("_shipped/rules/", "cluster/", "live/", "surfaces/bots/", "surfaces/cli/", "surfaces/run/", "vet/")
#: Rules that are read as files beside what is compiled of them.
KEPT_RULES = ("_shipped/rules/phrases/",)

#: The figures of the home page's example: the knob and where its slider stands.
EXAMPLE, EXAMPLE_KNOB, EXAMPLE_STOPS = "llamafactory-6800", "train.max_seq_len", (4096, 3072, 2560, 2048, 1536, 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", nargs="?", default=str(ROOT / "build" / "site"), type=Path)
    parser.add_argument("--figures", type=Path, help="what benchmarks/accuracy.py printed (default: it is run)")
    parser.add_argument("--no-docs", action="store_true", help="without the docs, which take a minute")
    asked = parser.parse_args()
    out: Path = asked.out.resolve()
    if not PYODIDE.is_dir():
        sys.exit(f"site/build.py: {PYODIDE.relative_to(ROOT)} is missing: run `make site`, or `npm ci --ignore-scripts` in site/")
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
    import gzip

    return gzip.compress(path.read_bytes(), 9)


# -- the engine


def build_engine(out: Path) -> None:
    """Pyodide, and one archive with the package, its rules and its libraries, compiled for the Python that Pyodide is."""
    out.mkdir()
    for name in RUNTIME:
        shutil.copy(PYODIDE / name, out)
    lock = json.loads((PYODIDE / "pyodide-lock.json").read_text())
    (out / "pyodide-lock.json").write_text(json.dumps({**lock, "packages": {}}))  # nothing is loaded from elsewhere
    unpacked = ROOT / "build" / "engine"
    shutil.rmtree(unpacked, ignore_errors=True)
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(unpacked / "wheel"), str(ROOT), quiet=True)
    source = unpacked / "source"
    with zipfile.ZipFile(next((unpacked / "wheel").glob("*.whl"))) as wheel:
        wheel.extractall(source, members=[name for name in wheel.namelist() if belongs(name)])
    for library in (yaml, jinja2, markupsafe):
        folder = Path(library.__file__).parent
        shutil.copytree(folder, source / folder.name, ignore=shutil.ignore_patterns("*.so", "*.pyd", "*.c", "*.pyi", "__pycache__", "py.typed"))
    run("node", str(HERE / "engine.mjs"), str(PYODIDE), str(source), str(out / "engine.zip"))


def belongs(name: str) -> bool:
    """Whether the engine has a file of the wheel."""
    package, _, inside = name.partition("/")
    return package == "diagnose" and (inside.startswith(KEPT_RULES) or not inside.startswith(LEFT_OUT))


def run(*command: str, quiet: bool = False) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"site/build.py: {command[0]} failed\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    if not quiet and done.stdout.strip():
        print(done.stdout.strip()[-500:])


# -- shell pages


def build_assets(out: Path) -> None:
    """Scripts as they are; one style sheet for the shell and the answers, with both themes at hand."""
    out.mkdir()
    for name in ("home.js", "play.js", "worker.js", "theme.js", "offline.js", "icon.svg"):
        shutil.copy(HERE / "assets" / name, out)
    tokens = page_templates.asset("tokens.css")
    light, dark = re.findall(r":root\{([^}]*)\}", tokens)
    themes = f"{tokens}:root[data-theme=light]{{{light.replace('light dark', 'light')}}}:root[data-theme=dark]{{color-scheme:dark;{dark}}}\n"
    answers = page_templates.asset(*html.SHEET[1:], *turned_page.SHEET)
    (out / "site.css").write_text(f"{themes}{answers}{(HERE / 'assets' / 'site.css').read_text()}")


def build_pages(out: Path, figures_file: Path | None) -> None:
    texts = read("texts")
    environment = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["prose"] = page_templates.prose
    cases = examples()
    shared = {
        "paths": PATHS, "version": __version__, "commit": commit(), "figures": figures(figures_file), "outside": read("outside"), "cards": card_names(),
        "examples": cases, "examples_json": script_json(cases), "texts_json": script_json(texts), "paths_json": script_json(PATHS),
        "patterns": patterns(),
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


def read(name: str) -> Any:
    return yaml.safe_load((HERE / f"{name}.yaml").read_text(encoding="utf-8"))


def script_json(value: object) -> str:
    """JSON that may stand in a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def patterns() -> str:
    """The patterns of bars, once for a page."""
    return str(page_templates.environment().get_template("parts.html.j2").module.patterns())  # type: ignore[attr-defined]


def policy(*, wasm: bool = False, scripts: tuple[str, ...] = (), styles: str = "'self'") -> str:
    """What a page may do: only what this site itself serves. `scripts`: hashes of inline scripts."""
    allowed = " ".join(["'self'", *(["'wasm-unsafe-eval'"] if wasm else []), *scripts])
    worker = "'self' blob:" if wasm else "'self'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src {styles}; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
        f"worker-src {worker}; manifest-src 'self'; base-uri 'self'; form-action 'none'"
    )


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def figures(file: Path | None) -> dict[str, Any]:
    """What benchmarks/accuracy.py prints, with the day and the commit."""
    if file is not None:
        printed = file.read_text()
    else:
        printed = subprocess.run([sys.executable, str(ROOT / "benchmarks" / "accuracy.py")], capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"^(\S+) +(\d+) of +(\d+) +([\d.]+%)$", printed, re.MULTILINE)
    if not rows:
        sys.exit("site/build.py: benchmarks/accuracy.py printed no figures")
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
    files = [{"name": file, "kind": kind, "text": (folder / file).read_text(encoding="utf-8")} for file, kind in listed]
    options = row.get("options", {**given.get("options", {}), **({} if logs else {})})
    return {"title": row["title"], "files": files, "options": options}


def example_states(lang: Lang) -> list[dict[str, str]]:
    """The home page's example at each stop of its slider."""
    case = example(EXAMPLE, {"title": ""})
    folder = ROOT / "corpus" / EXAMPLE
    files = {kind: [folder / file["name"] for file in case["files"] if file["kind"] == kind] for kind in ("log", "config")}
    turning = bench(explain(files["log"], configs=files["config"]))
    return [
        {"value": f"{stop:,}", "html": turned_page.turned(turning.turn({} if stop == EXAMPLE_STOPS[0] else {EXAMPLE_KNOB: stop}), lang)}
        for stop in EXAMPLE_STOPS
    ]


# -- docs


def build_docs(out: Path) -> None:
    """The docs and the generated manual by MkDocs; each page gets the policy with the hashes of its inline scripts."""
    staged = ROOT / "build" / "docs"
    shutil.rmtree(staged, ignore_errors=True)
    english, chinese = staged / "en", staged / "zh"
    shutil.copytree(ROOT / "docs", english / "docs", ignore=shutil.ignore_patterns("zh"))
    for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "LICENSE"):
        shutil.copy(ROOT / name, english)
    shutil.copytree(ROOT / "docs" / "generated" / "zh", chinese)
    for lang, folder in (("en", english), ("zh", chinese)):
        config = staged / f"{lang}.yml"
        config.write_text(yaml.safe_dump(mkdocs_config(lang, folder, out / PATHS[lang]["docs"]), allow_unicode=True))
        run(sys.executable, "-m", "mkdocs", "build", "--quiet", "--clean", "--config-file", str(config), quiet=True)
    for page in (*(out / "docs").rglob("*.html"), *(out / "zh" / "docs").rglob("*.html")):
        page.write_text(with_policy(page.read_text(encoding="utf-8"), "../" * (len(page.relative_to(out).parts) - 1)), encoding="utf-8")


def mkdocs_config(lang: Lang, folder: Path, out: Path) -> dict[str, Any]:
    schemes = [
        {"media": "(prefers-color-scheme: light)", "scheme": "default", "primary": "custom", "toggle": {"icon": "material/weather-night", "name": "Dark" if lang == "en" else "深色"}},
        {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "primary": "custom", "toggle": {"icon": "material/weather-sunny", "name": "Light" if lang == "en" else "浅色"}},
    ]  # fmt: skip
    guide = {"Start": ["README.md"], "Use": [f"docs/{name}.md" for name in ("inputs", "configs", "check", "surfaces", "triage", "snapshots")],
             "Understand": [f"docs/{name}.md" for name in ("memory", "failures", "rules", "corpus")],
             "Develop": ["CONTRIBUTING.md", "docs/architecture.md", *sorted(f"docs/{path.relative_to(ROOT / 'docs')}" for path in (ROOT / "docs" / "decisions").glob("*.md")), "docs/performance.md", "docs/scale.md", "SECURITY.md", "CHANGELOG.md"]}  # fmt: skip
    manual = folder / ("docs/generated" if lang == "en" else ".")
    listed = {name: sorted(str(path.relative_to(folder)) for path in (manual / room).glob("*.md")) for name, room in (("causes", "causes"), ("remedies", "remedies"))}
    reference = [str((manual / name).relative_to(folder)) for name in ("README.md", "facts.md", "knobs.md", "models.md", "cards.md")]
    names = {"en": ("Manual", "Causes", "Remedies"), "zh": ("手册", "原因", "办法")}[lang]
    nav: list[dict[str, Any]] = [{title: pages} for title, pages in guide.items()] if lang == "en" else []
    nav += [{names[0]: reference}, {names[1]: listed["causes"]}, {names[2]: listed["remedies"]}]
    return {
        "site_name": "oomdoctor", "docs_dir": str(folder), "site_dir": str(out), "use_directory_urls": True, "nav": nav,
        "theme": {"name": "material", "language": lang, "font": False, "palette": schemes, "logo": "", "favicon": "",
                  "icon": {"logo": "material/chart-areaspline"},
                  "features": ["navigation.tabs", "navigation.top", "navigation.indexes", "search.suggest", "search.highlight", "content.code.copy", "toc.follow"]},
        "plugins": [{"search": {"lang": [lang], **({"separator": r"[\s\u200b\-，。：；、]+"} if lang == "zh" else {})}}],
        "markdown_extensions": ["tables", "fenced_code", "admonition", {"toc": {"permalink": False}}, "pymdownx.highlight", "pymdownx.superfences"],
        "validation": {"links": {"not_found": "info", "anchors": "info", "unrecognized_links": "info", "absolute_links": "info"}, "omitted_files": "info"},
        "extra": {"generator": False, "homepage": "../" if lang == "en" else "../", "alternate": [{"name": "English", "link": "/docs/", "lang": "en"}, {"name": "中文", "link": "/zh/docs/", "lang": "zh"}]},
    }  # fmt: skip


class Inline(HTMLParser):
    """The inline scripts and style attributes of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self._held: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "style") and "src" not in given and given.get("type") in (None, "", "module", "text/javascript"):
            self._held = []
        if given.get("style"):
            self.styles.append(str(given["style"]))

    def handle_data(self, data: str) -> None:
        if self._held is not None:
            self._held.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style") and self._held is not None:
            (self.scripts if tag == "script" else self.styles).append("".join(self._held))
            self._held = None


def with_policy(page: str, root: str) -> str:
    """A page of the docs with its policy, what offline use needs, and no reference to another host's fonts or scripts."""
    page = re.sub(r'<link rel="?preconnect"?[^>]*>|<meta name="?generator"?[^>]*>', "", page)
    inline = Inline()
    inline.feed(page)
    scripts = tuple(dict.fromkeys(map(hash_source, inline.scripts)))
    styles = " ".join(dict.fromkeys(["'self'", *(["'unsafe-hashes'"] if inline.styles else []), *map(hash_source, inline.styles)]))
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy(scripts=scripts, styles=styles)}"><script src="{root}assets/offline.js" data-keep="docs" defer></script>'
    return re.sub(r"(<head[^>]*>\s*<meta charset=[^>]*>)", lambda match: match[1] + head, page, count=1)


def hash_source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


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
        if not place.endswith(".map") and not place.endswith(("sitemap.xml", "sitemap.xml.gz")):
            sets[kind].append(place)
    text = (HERE / "assets" / "sw.js").read_text()
    text = text.replace("{{version}}", digest.hexdigest()[:12]).replace("{{files}}", json.dumps(sets, separators=(",", ":")))
    (out / "sw.js").write_text(text)


def pages_of(out: Path) -> Iterator[Path]:
    yield from out.rglob("*.html")


if __name__ == "__main__":
    main()
