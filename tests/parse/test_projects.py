"""Public projects by name: what a text calls a program by tells what it does, wherever that is said unmistakably."""

from __future__ import annotations

import pytest
from pace import within

import diagnose
from diagnose import rule_files
from diagnose.facts import FactBook, require_declared
from diagnose.parse.facts import projects

MESSAGE = "RuntimeError: CUDA out of memory. Tried to allocate 1.12 GiB (GPU 0; 4.00 GiB total capacity; 2.41 GiB already allocated)"


@pytest.mark.parametrize(
    ("text", "task"),
    [
        ("I run Real-ESRGAN on one photo", "upscaling"),
        ("python inference_realesrgan.py -i a.png", "upscaling"),  # a part of a word
        ('File "/home/a/real_esrgan/utils.py", line 221, in enhance', "upscaling"),
        ("git clone https://github.com/suno-ai/bark", "text_to_speech"),  # an ordinary word, as the end of an address
        ("from auto_gptq import AutoGPTQForCausalLM", "quantisation"),
        ("whisperjav - ERROR - failed", "speech_to_text"),
        ("simtk.openmm.OpenMMException: failed", "simulations"),  # a module with dots
    ],
)
def test_a_name_tells_what_the_program_does(text: str, task: str) -> None:
    named = projects.find(text.encode())
    assert named is not None and named.task == task


@pytest.mark.parametrize(
    "text",
    [
        "the dog would bark, and the model has learned nothing",  # a word, not the project
        "realesrgan==0.3.0\nwhisperx 3.1.1\nauto-gptq: 0.7.1",  # what is installed
        "the shape of the tensor",
        "the list holds 922 neighs/bark and 12.5 GB/HAT",  # so many of something per something
        'File "/root/miniconda3/envs/TTS/lib/python3.9/site-packages/torch/a.py", line 1',  # what somebody calls an environment
    ],
)
def test_words_and_lists_of_packages_name_no_project(text: str) -> None:
    assert projects.find(text.encode()) is None


def test_a_list_of_projects_names_none_and_is_read_at_once() -> None:
    names = [name for row in rule_files.table("projects").values() for name in row.get("names", ())]
    with within(0.5):
        assert projects.find(" ".join(names).encode()) is None
        assert projects.find(" ".join(f"whisper{number}" for number in range(4_000)).encode()) is None


def test_of_several_the_one_named_most_counts_and_of_equals_the_first() -> None:
    assert projects.find(b"SwinIR beside nerfstudio").task == "upscaling"  # type: ignore[union-attr]
    assert projects.find(b"SwinIR beside nerfstudio, and nerfstudio again").task == "radiance_fields"  # type: ignore[union-attr]


def test_of_the_names_of_one_kind_the_first_is_told() -> None:
    """Whatever order the words of a text are kept in: it changes with every process."""
    for task, row in rule_files.table("projects").items():
        names = row.get("names", [])[:6]
        named = projects.find(" beside ".join(names).encode())
        assert not names or (named is not None and named.task == task and named.offset == 0), (task, named)


def test_no_name_stands_under_two_tasks() -> None:
    seen: dict[bytes, str] = {}
    for task, row in rule_files.table("projects").items():
        for kind in ("names", "placed"):
            for name in row.get(kind, ()):
                key = name.encode().translate(None, b"-_.").lower()
                assert seen.setdefault(key, task) == task, name


def test_conditions_may_name_every_task() -> None:
    assert set(require_declared("run.task").words) == set(rule_files.table("projects"))


def test_every_task_says_which_regimes_it_has_and_what_its_samples_are() -> None:
    regimes, sees = set(rule_files.table("vocabulary")["regime"]), {"pixels", "sound", "other", None}
    for task, row in rule_files.table("projects").items():
        assert set(row["does"]) <= regimes and row.get("sees") in sees, task


def test_what_the_program_does_decides_words_and_advice() -> None:
    diagnosis = diagnose.explain(f"# Real-ESRGAN runs out of memory\n\n{MESSAGE}\n")
    book = FactBook(diagnosis.facts)
    assert (book.word("run.regime"), book.word("run.sees")) == ("infer", "pixels")
    assert diagnosis.outcome.remedies[0].title.en.startswith("Process the picture in tiles")
    assert "lower_micro_batch" not in {remedy.id for remedy in diagnosis.outcome.remedies}


@pytest.mark.parametrize("task", [task for task, row in rule_files.table("projects").items() if row.get("takes") == "none"])
def test_where_no_network_runs_no_batch_model_or_training_is_spoken_of(task: str) -> None:
    name = rule_files.table("projects")[task]["names"][0]
    diagnosis = diagnose.explain(f"# {name} runs out of memory\n\nCUDA error: out of memory in cuMemAlloc_v2(&device_pointer, size)\n")
    remedies = {remedy.id for remedy in diagnosis.outcome.remedies}
    assert "smaller_samples" in remedies and remedies <= set(rule_files.table("vocabulary")["without_network"])
    assert not {question.fact for question in diagnosis.outcome.questions} & {"model.path", "model.shape", "train.max_seq_len"}
    assert not diagnosis.judgement.causes


@pytest.mark.parametrize(
    "text",
    [
        f"# Blender add-on runs out of memory\n\n{MESSAGE}\n",  # torch inside a renderer
        "# cuDF beside XGBoost\n\nloss.backward()\ntrainer.train()\nCUDA error: out of memory in cuMemAlloc_v2(&device_pointer, size)\n",
    ],
)
def test_where_a_network_runs_beside_such_a_program_its_advice_stays(text: str) -> None:
    diagnosis = diagnose.explain(text)
    assert FactBook(diagnosis.facts).word("run.takes") is None
    assert any(remedy.id == "lower_eval_batch" or "Halve the batch" in remedy.title.en for remedy in diagnosis.outcome.remedies)


def test_what_speaks_of_training_outweighs_a_name() -> None:
    diagnosis = diagnose.explain(f"SwinIR\ntrainer.train()\nloss.backward()\n{MESSAGE}\n")
    assert FactBook(diagnosis.facts).word("run.regime") == "train"
