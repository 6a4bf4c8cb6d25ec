"""Which program each failure is said to be of: `python benchmarks/programs.py`.

Two confusion matrices over the corpus, a row for what wrote the log or reads the configuration and a column for what it is said to be: of
the cases by their log or page alone (their programs are listed in corpus/programs.yaml; every other case has none of these), and of
the configurations in corpus/configs by the configuration alone. All stands on the diagonal, or is printed by name.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import yaml

from diagnose import check, explain
from diagnose.diagnosis import Diagnosis

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
#: Folders of corpus/configs that hold a program's own settings; those of diffusers are of its training scripts.
CONFIGURED = (
    *(
        "comfyui",
        "detectron2",
        "exllama",
        "faster_whisper",
        "forge",
        "invokeai",
        "llamacpp",
        "openpi",
        "lmdeploy",
        "nnunet",
        "sglang",
        "tei",
        "textgen",
        "tgi",
        "trtllm",
        "ultralytics",
    ),
    *("kohya", "vllm", "webui", "yolov5"),
    *("ai_toolkit", "lerobot", "maxtext", "mmdet", "musubi", "onetrainer", "open_clip", "simpletuner", "timm"),
    *("diffsynth", "diffusion_pipe", "espnet", "f5_tts", "icefall"),
)
#: Nothing that is named.
NONE = "-"


def of_cases() -> dict[str, str]:
    """The program of every case that has one."""
    listed = yaml.load((CORPUS / "programs.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
    return {case: program for program, cases in listed.items() for case in cases.split()}


@cache
def logs() -> dict[str, Path]:
    """The log or page of every case."""
    found: dict[str, Path] = {}
    for path in CORPUS.glob("*/expected.yaml"):
        log = path.parent / (yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader).get("log") or "error.log")
        found |= {path.parent.name: log} if log.is_file() else {}
    return found


@cache
def configs() -> dict[str, Path]:
    """Every configuration, by its folder and name."""
    return {
        f"{path.parent.name}/{path.name}": path
        for path in CORPUS.glob("configs/*/*")
        if path.is_file() and not path.name.endswith(".expected.yaml")
    }


def configured(config: str) -> str:
    """The program of a configuration that has a table and a name of its own; none of the others."""
    folder = config.partition("/")[0]
    return folder if folder in CONFIGURED else NONE


def said(diagnosis: Diagnosis) -> str:
    return next((str(fact.value) for fact in diagnosis.facts if fact.name == "run.program"), NONE)


def said_by_log(case: str) -> str:
    return said(explain(logs()[case]))


def said_by_config(config: str) -> str:
    """The program, by the name of the engine where it is a binding of one that has the configuration's folder."""
    diagnosis = check([configs()[config]], frontier=False)
    engine = next((str(fact.value) for fact in diagnosis.facts if fact.name == "rollout.engine"), NONE)
    return engine if engine == configured(config) else said(diagnosis)


def matrix(rows: list[tuple[str, str, str]]) -> str:
    counted = Counter((truth, claimed) for _, truth, claimed in rows)
    names = sorted({name for pair in counted for name in pair})
    lines = [
        f"{truth:>16} " + " ".join(f"{claimed} {counted[truth, claimed]}" for claimed in names if counted[truth, claimed])
        for truth in names
        if any(counted[truth, claimed] for claimed in names)
    ]
    wrong = [f"  {name}: {truth}, said to be {claimed}" for name, truth, claimed in rows if truth != claimed]
    return "\n".join([*lines, f"off the diagonal: {len(wrong)} of {len(rows)}", *wrong])


if __name__ == "__main__":
    truth = of_cases()
    print("by the log or page alone")
    print(matrix([(case, truth.get(case, NONE), said(explain(log))) for case, log in sorted(logs().items())]))
    print("by the configuration alone")
    print(matrix([(name, configured(name), said_by_config(name)) for name in sorted(configs())]))
