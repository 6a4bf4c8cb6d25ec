"""How often a request of no known tensor is called one: `python benchmarks/chance.py [COUNT] [SEED]`.

Sizes that the logs of corpus/ print are dealt to ten models with everyday settings, so that a size hardly ever belongs to the job it is
dealt to, each without a traceback and in a phase chosen by chance. At most 2 in 100 may be called exact; of those that are, most are
right by accident (112.00 MiB is a matrix of Llama-3-8B in whatever log it stands). The time is the processor time of one attribution.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from diagnose import catalogue
from diagnose.budget.attribution.request_tensor import attribute
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.facts import Fact, FactBook, Witness
from diagnose.parse.model.event import Event
from diagnose.units import size_of

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
PHASES = ("unknown", "model_load", "forward", "loss", "backward", "optimizer_step", "checkpoint_save")
EVERYDAY: dict[str, Any] = {
    "train.framework": "trl",
    "train.stage": "sft",
    "train.precision": "bf16",
    "train.load_dtype": "bf16",
    "train.packing": False,
    "log.family": "torch_cuda",
}
#: Model, rows, length, what is trained, DeepSpeed's stage, ranks.
JOBS = (
    ("meta-llama/Llama-3.1-8B", 2, 4096, "lora", 0, 1),
    ("meta-llama/Llama-2-7b-hf", 4, 2048, "full", 2, 4),
    ("meta-llama/Llama-2-13b-hf", 1, 4096, "full", 3, 8),
    ("meta-llama/Llama-3.1-70B", 1, 8192, "lora", 3, 8),
    ("Qwen/Qwen2.5-7B", 2, 4096, "full", 3, 8),
    ("Qwen/Qwen2.5-0.5B", 8, 1024, "full", 0, 1),
    ("Qwen/Qwen2.5-32B", 1, 16384, "lora", 0, 2),
    ("mistralai/Mistral-7B-v0.1", 1, 32768, "lora", 0, 1),
    ("google/gemma-2-9b", 2, 2048, "full", 3, 8),
    ("microsoft/phi-2", 16, 512, "full", 0, 1),
)


def printed_sizes() -> list[str]:
    """Every size that a message of the corpus asks for, once; 2 and 20 MiB are never attributed."""
    logs = (path.read_text(encoding="utf-8", errors="replace") for path in CORPUS.rglob("*.log"))
    sizes = {size for log in logs for size in re.findall(r"Tried to allocate (\d{1,4}\.\d\d [MG]iB)", log)}
    return sorted(sizes - {"2.00 MiB", "20.00 MiB"})


def known_job(model: str, rows: int, length: int, tuning: str, stage: int, ranks: int) -> FactBook:
    """The book of one job."""
    values: dict[str, Any] = {"train.micro_batch_size": rows, "train.max_seq_len": length, "train.finetuning": tuning, "zero.stage": stage}
    values |= {"parallel.world": ranks, "model.shape": catalogue.model(model)}
    witness = Witness("given", text="a job of the benchmark")
    return FactBook(Fact(name, value, "given", witness) for name, value in (EVERYDAY | values).items())


def deal(count: int, seed: int) -> tuple[Counter[str], list[float]]:
    """The claims of `count` dealt requests by kind, and the milliseconds of each attribution."""
    chance, claims, times = random.Random(seed), Counter[str](), list[float]()
    sizes, jobs = printed_sizes(), [(book, ledgers(book)) for book in (known_job(*job) for job in JOBS)]
    for _ in range(count):
        book, drawn = chance.choice(jobs)
        event = Event(family="torch_cuda", phase=chance.choice(PHASES), requested=size_of(chance.choice(sizes)))
        start = time.process_time()
        best = next(iter(attribute(book, drawn, event, 0)), None)
        times.append(1000 * (time.process_time() - start))
        claims["exact" if best is not None and best.exact else "may be" if best is not None else "nothing"] += 1
        claims["named"] += best is not None and best.named
    return claims, sorted(times)


def main() -> None:
    count, seed = map(int, (sys.argv[1:] + ["10000", "1"][len(sys.argv) - 1 :])[:2])
    claims, times = deal(count, seed)
    for kind, number in claims.most_common():
        print(f"{kind:8} {number:6} = {number / count:.1%}")
    print(f"milliseconds: median {times[count // 2]:.2f}, 99 in 100 below {times[count * 99 // 100]:.2f}")


if __name__ == "__main__":
    main()
