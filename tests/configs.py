"""The configs of corpus/configs: names, files and what each expects."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from cases import CORPUS, shared, without_advice

from diagnose import check
from diagnose.diagnosis import Diagnosis

CONFIGS = CORPUS / "configs"

#: FRAMEWORK/NAME, for each NAME.expected.yaml.
NAMES = sorted(str(path.relative_to(CONFIGS))[: -len(".expected.yaml")] for path in CONFIGS.glob("*/*.expected.yaml"))


@cache
def wanted(name: str) -> dict[str, Any]:
    data: dict[str, Any] = yaml.load((CONFIGS / f"{name}.expected.yaml").read_bytes(), yaml.CSafeLoader)
    return data


def files(name: str) -> list[Path]:
    """The config, then the others of the same job."""
    folder = (CONFIGS / name).parent
    mine = [path for path in folder.iterdir() if path.stem == Path(name).name and not path.name.endswith(".expected.yaml")]
    assert len(mine) == 1, f"{name}: one config beside its expected.yaml, not {mine}"
    return [*mine, *(folder / other for other in wanted(name).get("also", []))]


@cache
def checked(name: str) -> Diagnosis:
    """What the files say and need, without advice and without how far their settings can be raised."""

    def read() -> Diagnosis:
        with without_advice():
            return check(files(name), **wanted(name).get("options", {}), frontier=False)

    return shared(f"checked {name.replace('/', ' ')}", read)
