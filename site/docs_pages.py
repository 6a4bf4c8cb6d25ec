"""The docs and the generated manual as pages, by MkDocs Material, in both languages."""

from __future__ import annotations

import re
import shutil
import sys
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import yaml
from site_parts import HERE, PATHS, ROOT, policy, read, run

from diagnose.phrases import Lang

#: Pages at the root of the repository that the docs have too.
TOP_PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
#: Pages that are written in Chinese by hand, and their folder on the site.
WRITTEN, GUIDE = ROOT / "docs" / "zh", Path("guide")
#: The theme's search is a dialog without a name.
UNNAMED = ('data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"')
#: The languages by name and code.
NAMES = (("English", "en"), ("中文", "zh"))


def build_docs(out: Path) -> None:
    """The docs and the generated manual by MkDocs; each page gets the policy with the hashes of its inline scripts."""
    staged = ROOT / "build" / "docs"
    shutil.rmtree(staged, ignore_errors=True)
    english, chinese = staged / "en", staged / "zh"
    shutil.copytree(ROOT / "docs", english / "docs", ignore=shutil.ignore_patterns("zh"))
    for name in TOP_PAGES:
        shutil.copy(ROOT / name, english)
    shutil.copytree(ROOT / "docs" / "generated" / "zh", chinese)
    shutil.copytree(WRITTEN, chinese / GUIDE)
    for folder in (english, chinese):
        shutil.copy(HERE / "assets" / "docs.css", folder)
    sites: tuple[tuple[Lang, Path, Path], ...] = (("en", english, ROOT), ("zh", chinese, ROOT / "docs" / "generated" / "zh"))
    for lang, folder, home in sites:
        for page in folder.rglob("*.md"):
            place = page.relative_to(folder)
            written = lang == "zh" and place.parts[0] == GUIDE.name
            page.write_text(
                relinked(page.read_text(encoding="utf-8"), WRITTEN / place.name if written else home / place, lang), encoding="utf-8"
            )
        config = staged / f"{lang}.yml"
        config.write_text(yaml.safe_dump(mkdocs_config(lang, folder, out / PATHS[lang]["docs"]), allow_unicode=True))
        built = out / PATHS[lang]["docs"]
        run(sys.executable, "-m", "mkdocs", "build", "--quiet", "--clean", "--config-file", str(config))
        for name in ("404.html", "sitemap.xml.gz"):  # they need the address of the site
            (built / name).unlink(missing_ok=True)
    for page in (*(out / "docs").rglob("*.html"), *(out / "zh" / "docs").rglob("*.html")):
        page.write_text(with_policy(page.read_text(encoding="utf-8"), "../" * (len(page.relative_to(out).parts) - 1)), encoding="utf-8")


def relinked(text: str, page: Path, lang: Lang) -> str:
    """The text of a page of the repository as a page of the site: links to the other language's manual lead to its site, and links to what
    the site lacks become their words."""

    def replaced(match: re.Match[str]) -> str:
        words, path, anchor = match[1], match[2], match[3] or ""
        target = (page.parent / path).resolve()
        home, served = site_of(target), site_of(page)
        if home is None or served is None or not target.exists():
            return words[1:-1]
        if home[0] == lang:
            return match[0]
        up = "../" * (len(served[1].parts) + PATHS[lang]["docs"].count("/") - (page.name == "README.md"))
        place = home[1].parent if home[1].name == "README.md" else home[1].with_suffix("")
        return f"[{words[1:-1]}]({up}{PATHS[home[0]]['docs']}{'' if str(place) == '.' else f'{place.as_posix()}/'}{anchor})"

    return re.sub(r"(\[[^\]\n]*\])\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)", replaced, text)


def site_of(file: Path) -> tuple[Lang, Path] | None:
    """The language of the docs that have this file of the repository, and its place there; None where none has."""
    chinese = ROOT / "docs" / "generated" / "zh"
    if file.is_relative_to(WRITTEN):
        return "zh", GUIDE / file.relative_to(WRITTEN)
    if file.is_relative_to(chinese):
        return "zh", file.relative_to(chinese)
    if file.is_relative_to(ROOT / "docs") or (file.parent == ROOT and file.name in TOP_PAGES):
        return "en", file.relative_to(ROOT)
    return None


def titled(folder: Path, page: str) -> dict[str, str]:
    """A page of the navigation with the first heading of its text."""
    heading = re.search(r"^# (.+)$", (folder / page).read_text(encoding="utf-8"), re.MULTILINE)
    return {heading[1].replace("`", "") if heading else page: page}


def mkdocs_config(lang: Lang, folder: Path, out: Path) -> dict[str, Any]:
    """The settings of one language's docs."""
    shared = read("mkdocs")
    links = {"en": ("./", "../zh/docs/"), "zh": ("../../docs/", "./")}[lang]
    return {
        **shared,
        "docs_dir": str(folder),
        "site_dir": str(out),
        "nav": [{part: of if isinstance(of, str) else part_of(folder, of)} for part, of in read("docs_nav")[lang].items()],
        "theme": {**shared["theme"], "language": lang},
        "plugins": [{"search": {"lang": [lang], **({"separator": r"[\s\u200b\-，。：；、]+"} if lang == "zh" else {})}}],
        "extra": {
            **shared["extra"],
            "alternate": [{"name": name, "link": link, "lang": code} for (name, code), link in zip(NAMES, links, strict=True)],
        },
    }


def part_of(folder: Path, patterns: list[str]) -> list[dict[str, str]]:
    """The pages of a part of the navigation."""
    return [titled(folder, page.relative_to(folder).as_posix()) for pattern in patterns for page in sorted(folder.glob(pattern))]


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
    page = page.replace(*UNNAMED)
    page = page.replace("<pre>", '<pre tabindex="0">')  # what scrolls is reached by the keyboard
    page = re.sub(r"<th(| style=[^>]*)></th>", r"<td\1></td>", page)  # a head without words is none
    page = re.sub(r'<link rel="?preconnect"?[^>]*>|<meta name="?generator"?[^>]*>', "", page)
    inline = Inline()
    inline.feed(page)
    scripts = tuple(dict.fromkeys(map(hash_source, inline.scripts)))
    styles = " ".join(dict.fromkeys(["'self'", *(["'unsafe-hashes'"] if inline.styles else []), *map(hash_source, inline.styles)]))
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy(scripts=scripts, styles=styles)}">'
    head += f'<script src="{root}assets/offline.js" data-keep="docs" defer></script>'
    return re.sub(r"(<head[^>]*>\s*<meta charset=[^>]*>)", lambda match: match[1] + head, page, count=1)


def hash_source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
