"""Every shape in which people paste a job: commands of any form, manifests, scripts that start others, sentences in either language."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from collected import for_each

from diagnose.facts import FactBook
from diagnose.pipeline import check, explain

SHAPES: dict[str, dict[str, Any]] = yaml.load((Path(__file__).parent / "shapes.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)


@for_each("name", SHAPES)
def test_a_shape_is_read(name: str, tmp_path: Path) -> None:
    shape = SHAPES[name]
    paths = []
    for file, text in {**shape.get("files", {}), **({"page.md": shape["page"]} if "page" in shape else {})}.items():
        paths.append(tmp_path / name.replace(" ", "-") / file)
        paths[-1].parent.mkdir(exist_ok=True)
        paths[-1].write_text(text, encoding="utf-8")
    logs = [path for path in paths if path.suffix in (".log", ".md")]
    configs = [path for path in paths if path not in logs]
    diagnosis = explain(logs, configs=configs) if logs else check(configs, frontier=False)
    book = FactBook(diagnosis.facts)
    facts = {fact: str(found.value) for fact in shape["facts"] if (found := book.fact(fact)) is not None}
    assert facts == shape["facts"]
    assert (diagnosis.verdict.status, diagnosis.verdict.phase) == (
        shape.get("status", diagnosis.verdict.status),
        shape.get("phase", diagnosis.verdict.phase),
    )
    if "lost" in shape:  # options that a comment or a blank cut off are said, and their values are not in effect
        assert any(shape["lost"] in notice.message.en for notice in diagnosis.notices)
