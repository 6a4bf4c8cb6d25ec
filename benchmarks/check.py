"""What `check` costs after start-up: one ledger, and a whole frontier, in CPU milliseconds.

    python benchmarks/check.py [CONFIG...] [--gpu NAME] [--gpus N] [--runs 5] [--check]

CPU time of this process and the best of several runs, because other work may share the cores. The bars are the project's: the
ledger of one configuration 2 ms, a frontier 200 ms. Without configs some of corpus/configs are measured: one card, sharded,
preference pairs, rollouts with several roles. With --check the exit status is 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from diagnose import check
from diagnose.budget.model import formulas
from diagnose.budget.moments import role_ledgers
from diagnose.budget.moments.role_ledgers import clear_cache
from diagnose.facts import FactBook
from diagnose.plan.choose.advice import job_of
from diagnose.plan.outlook.frontier import outlook

CONFIGS = Path(__file__).resolve().parent.parent / "corpus" / "configs"
MEASURED = (
    "llamafactory/qlora-of-a-script.sh",
    "openrlhf/kto-with-lora.sh",
    "openrlhf/ppo-with-a-critic-over-ray.sh",
    "swift/grpo-colocated.sh",
    "trl/reward-model.sh",
    "verl/grpo-with-fsdp-offload.sh",
)

#: Bars, milliseconds.
LEDGER, FRONTIER = 2.0, 200.0


def best(work: Callable[[int], object], runs: int) -> float:
    """CPU milliseconds of the fastest of some runs; a run is told its number, and no term and no ledger is known from the one before."""
    found = []
    for number in range(runs):
        formulas.clear_cache()
        clear_cache()
        before = time.process_time()
        work(number)
        found.append(time.process_time() - before)
    return 1000 * min(found)


def measure(config: Path, gpu: str, gpus: int | None, runs: int) -> tuple[float, float, int]:
    """(one ledger, one frontier, ways found)."""
    seen = check([config], gpu=gpu, gpus=gpus, frontier=False)
    book = FactBook(seen.facts)

    def frontier(_: int) -> int:
        return len(outlook(job_of(FactBook(seen.facts), seen.ledgers, seen.judgement, seen.documents)).ways)

    return best(lambda _: role_ledgers.ledgers(book), 4 * runs), best(frontier, runs), frontier(0)


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("configs", nargs="*", type=Path)
    asked.add_argument("--gpu", default="A100-80GB")
    asked.add_argument("--gpus", type=int)
    asked.add_argument("--runs", type=int, default=5)
    asked.add_argument("--check", action="store_true")
    options = asked.parse_args()
    missed = False
    print(f"{'configuration':<52}{'ledger':>10}{'frontier':>12}{'ways':>6}")
    for config in options.configs or [CONFIGS / name for name in MEASURED]:
        ledger, frontier, ways = measure(config, options.gpu, options.gpus, options.runs)
        missed |= ledger > LEDGER or frontier > FRONTIER
        print(f"{'/'.join(config.parts[-2:]):<52}{ledger:>7.2f} ms{frontier:>9.0f} ms{ways:>6}")
    print(f"bars: ledger {LEDGER:g} ms, frontier {FRONTIER:g} ms: {'missed' if missed else 'met'}")
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
