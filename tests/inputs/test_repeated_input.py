"""One sign or word many times over, wherever a log, a page or a configuration can hold it: the time grows with the length, not its square.

What failed so: an allocator's options without a colon (35 s for 44 kB), a scheduler's line of hyphens (325 s for 30 kB), blanks before the
options that an edit joins (63 s for 65 kB).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from collected import for_each
from pace import within
from sweep import SWEEP, sample

from diagnose.adapters.formats.settings import ConfigSource
from diagnose.pipeline import explain

MESSAGE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
SIGNS = "aA1 ,:-=([{'/\\._|#<&+`*\té不"
UNITS = [
    *SIGNS,
    *("a" + sign for sign in " ,=:.-/_"),
    *("1" + sign for sign in " .,"),
    "x1",
    "://",
    "--a",
    "--a ",
    "$a",
    "A=",
    "${a",
    "$((",
    "*a",
]
UNITS += ["<details>", "> ", "batch size ", "| a ", "- a ", "OOM "]
#: Where it stands in a log or page.
LOGS: dict[str, Callable[[str], str]] = {
    "a line of a log": lambda text: f"{text}\n{MESSAGE}",
    "behind a message": lambda text: f"{MESSAGE[:-1]}{text}\n",
    "a line of a page": lambda text: f"# OOM when training\n\n{text}\n\n```\n{MESSAGE}```\n",
    "a fence of a page": lambda text: f"# OOM\n\n```\n{text}\n{MESSAGE}```\n",
    "the line of a frame": lambda text: f'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    {text}\n{MESSAGE}',
    "the name of a frame": lambda text: f'Traceback (most recent call last):\n  File "a.py", line 3, in {text}\n    x\n{MESSAGE}',
}
_RUN = "torchrun --nproc_per_node 2 train.py --batch_size 4"
#: The files, by name, in which it stands.
CONFIGS: dict[str, Callable[[str], str]] = {
    "value.yaml": lambda text: "model_name_or_path: '{}'\ncutoff_len: 2048\n".format(text.replace("'", "")),
    "allocator.sh": lambda text: "export PYTORCH_CUDA_ALLOC_CONF='{}'\n{}\n".format(text.replace("'", ""), _RUN),
    "argument.sh": lambda text: f"{_RUN} --model_name_or_path {text} --x 1\n",
    "before.sh": lambda text: f"torchrun {text} --nproc_per_node 2 train.py --batch_size 4\n",
    "variable.sh": lambda text: f"X={text}\n{_RUN} --model_name_or_path $X\n",
    "line.sh": lambda text: f"{text}\n{_RUN}\n",
    "job.sbatch": lambda text: f"#!/bin/bash\n#SBATCH --gres=gpu:2 {text}\nsrun {_RUN}\n",
    "Makefile": lambda text: f"train:\n\t{_RUN} {text}\n",
    "Dockerfile": lambda text: f"FROM x\nRUN {text}\nCMD {_RUN}\n",
    "code.py": lambda text: f"from transformers import TrainingArguments\nx = {text}\na = TrainingArguments(learning_rate=4)\n",
    "text.py": lambda text: f"from transformers import TrainingArguments\na = TrainingArguments(output_dir={text!r})\n",
    "line.toml": lambda text: f"{text}\nbatch_size = 4\n",
    "value.toml": lambda text: "a = '{}'\nbatch_size = 4\n".format(text.replace("'", "")),
    "value.ini": lambda text: f"[a]\nb = {text}\nbatch_size = 4\n",
}
LENGTH = 40_000 if SWEEP else 20_000


@for_each("place, unit", [("allocator.sh", "a"), ("job.sbatch", "-"), *sample(list(itertools.product((*LOGS, *CONFIGS), UNITS)), 24)])
def test_a_repeated_word_takes_time_as_its_length(place: str, unit: str) -> None:
    text = unit * (LENGTH // len(unit))
    with within(3):
        if place in LOGS:
            explain(LOGS[place](text))
        else:
            explain(MESSAGE, configs=[ConfigSource(place, CONFIGS[place](text).encode())])
