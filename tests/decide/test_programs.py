"""Every program is known by its own log, page or configuration alone, and none is taken for another (benchmarks/programs.py)."""

from __future__ import annotations

import programs
from collected import for_each
from sweep import sample

TRUTH = programs.of_cases()


@for_each("case", sample(sorted(programs.logs()), 45))
def test_a_program_is_known_by_its_log_or_page(case: str) -> None:
    assert programs.said_by_log(case) == TRUTH.get(case, programs.NONE)


@for_each("config", sample(sorted(programs.configs()), 25))
def test_a_program_is_known_by_its_configuration(config: str) -> None:
    assert programs.said_by_config(config) == programs.configured(config)


@for_each("program", programs.CONFIGURED)
def test_every_configured_program_has_three_configurations(program: str) -> None:
    assert len(list((programs.CORPUS / "configs" / program).glob("*.expected.yaml"))) >= 3
