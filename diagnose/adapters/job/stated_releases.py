"""The releases that configs state: pinned packages (`trl==0.17.0`) and the tags of container images (`vllm/vllm-openai:v0.8.5`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice

from diagnose import rule_files
from diagnose.adapters.documents.open_config import OpenDocument
from diagnose.facts import Fact, Witness, declared, library_of
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.units import Version

_RELEASE = r"v?(\d{1,4}\.\d{1,4}(?:\.\w{1,12}){0,3})"

#: A package and its release, as pip, requirements and Dockerfiles have it.
_PINNED = lazy_compile(rf"(?<![\w.-])([A-Za-z][\w.-]{{1,40}})(?:\[[\w,-]{{0,60}}\])?=={_RELEASE}")

#: An image with its owner, and the release that its tag begins with.
_IMAGE = lazy_compile(rf"(?<![\w.-])([\w-]{{1,40}}/[\w.-]{{1,60}}):{_RELEASE}")

#: Pins, and images, of one file that are read.
MOST = 64


def facts(documents: Iterable[OpenDocument]) -> Iterator[Fact]:
    """The release of each library that the configs state as one; where they state several, none."""
    found: dict[str, list[Fact]] = {}
    for document in documents:
        for fact in _of_text(document.source.name, document.source.data):
            found.setdefault(fact.name, []).append(fact)
    for stated in found.values():
        if len({fact.value for fact in stated}) == 1:
            yield stated[0]


def _of_text(name: str, data: bytes) -> Iterator[Fact]:
    has_pin, has_image = b"==" in data, any(image in data for image in _images_as_bytes())
    text = data.decode("utf-8", "replace") if has_pin or has_image else ""
    searched = [*([(_PINNED, _of_package)] if has_pin else ()), *([(_IMAGE, _of_image)] if has_image else ())]
    for pattern, fact_of in searched:
        for match in islice(pattern.finditer(text), MOST):
            fact, start = fact_of(match[1]), text.rfind("\n", 0, match.start()) + 1
            if declared(fact) is not None and "#" not in text[start : match.start()]:
                line = text.count("\n", 0, start) + 1
                yield Fact(fact, Version(match[2]), "config", Witness(name, line, match.start() - start + 1, match[0]))


def _of_package(package: str) -> str:
    return f"version.{library_of(package.lower().replace('_', '-')).replace('-', '_')}"


def _of_image(image: str) -> str:
    return _images().get(image.lower(), "")


@cache
def _images() -> dict[str, str]:
    """The facts of releases by the image whose tags are these."""
    return {entry["image"]: name for name, entry in rule_files.table("facts").items() if "image" in entry}


@cache
def _images_as_bytes() -> tuple[bytes, ...]:
    return tuple(image.encode() for image in _images())
