"""`watch`, `install_excepthook`, callbacks and the plugin of pytest: what passes is explained, and passes."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from collected import for_each
from forked import ENTRY, forked

from diagnose import install_excepthook, watch
from diagnose.diagnosis import Diagnosis
from diagnose.live import callbacks, process_memory, watching
from diagnose.live.trainer_state import STATE

OOM = (
    "CUDA out of memory. Tried to allocate 4.64 GiB. GPU 0 has a total capacity of 79.25 GiB of which 1.41 GiB is free. "
    "Process 4242 has 77.80 GiB memory in use. Of the allocated memory 70.51 GiB is allocated by PyTorch, and 5.51 GiB is "
    "reserved by PyTorch but unallocated."
)


class OutOfMemoryError(RuntimeError):
    """As torch calls it."""


class XlaRuntimeError(RuntimeError):
    """As jax calls it."""


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    STATE.reset()
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "C.UTF-8")
    yield
    STATE.reset()


def raised(error: BaseException, **options: Any) -> list[Diagnosis]:
    """What `watch` reports of an exception; it must come out as the same object."""
    found: list[Diagnosis] = []
    with pytest.raises(type(error)) as passed, watch(report=found.append, **options):
        raise error
    assert passed.value is error
    return found


@for_each(
    "error",
    [
        OutOfMemoryError(OOM),
        RuntimeError(OOM),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        XlaRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes."),
        MemoryError(),
    ],
)
def test_exceptions_of_memory_are_explained(error: Exception) -> None:
    """By class or by text; the same exception goes on."""
    (found,) = raised(error)
    assert found.verdict.status in ("oom", "suspected")


def test_a_config_is_named_by_a_string_too(tmp_path: Path) -> None:
    """`watch(config="train.yaml")` names a file, and `watch(config=text)` is one."""
    text = "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ncutoff_len: 1234\nper_device_train_batch_size: 7\n"
    (file := tmp_path / "train.yaml").write_text(text)
    for config in (str(file), text):
        (found,) = raised(RuntimeError(OOM), config=config)
        assert {fact.name: fact.value for fact in found.facts}["train.micro_batch_size"] == 7
        assert not [notice for notice in found.notices if notice.level == "error"]


@pytest.mark.parametrize("error", [ValueError("shapes"), KeyboardInterrupt(), SystemExit(3), RuntimeError("NaN in loss")])
def test_others_pass_in_silence(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    assert raised(error) == []
    assert capsys.readouterr() == ("", "")


def test_a_wrapped_exception_is_found() -> None:
    """Trainers and Ray wrap what happened in a worker; a group holds several."""
    outer = ValueError("worker failed")
    outer.__cause__ = OutOfMemoryError(OOM)
    assert len(raised(outer)) == 1
    assert len(raised(ExceptionGroup("workers", [ValueError("x"), OutOfMemoryError(OOM)]))) == 1


def test_it_is_explained_once() -> None:
    """Two blocks and a hook round one failure are one answer."""
    found: list[Diagnosis] = []
    with pytest.raises(OutOfMemoryError), watch(report=found.append), watch(report=found.append):
        raise OutOfMemoryError(OOM)
    assert len(found) == 1


def test_it_decorates() -> None:
    found: list[Diagnosis] = []

    @watch(report=found.append)
    def train() -> None:
        raise OutOfMemoryError(OOM)

    with pytest.raises(OutOfMemoryError):
        train()
    assert len(found) == 1


def test_configs_and_frames_are_used(tmp_path: Path) -> None:
    """The config that was named, and the traceback of the exception, are part of the diagnosis."""
    config = tmp_path / "sft.yaml"
    config.write_text("model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\nfinetuning_type: lora\ncutoff_len: 4096\n")
    (found,) = raised(OutOfMemoryError(OOM), config=config, gpus=8)
    known = {fact.name: fact.value for fact in found.facts}
    assert known["train.max_seq_len"] == 4096 and known["parallel.world"] == 8
    assert found.root is not None and found.root.frames[-1].function == "raised"


def test_the_answer_is_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OutOfMemoryError), watch():
        raise OutOfMemoryError(OOM)
    out, err = capsys.readouterr()
    assert out == "" and "OUT OF MEMORY" in err
    with pytest.raises(OutOfMemoryError), watch(lang="zh"):
        raise OutOfMemoryError(OOM)
    assert "显存不足" in capsys.readouterr().err


def test_the_next_command_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No option of a command that was not typed; the one that takes them, with the configs that were given, answers the same failure."""
    config = tmp_path / "sft.yaml"
    config.write_text("model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\nfinetuning_type: lora\ncutoff_len: 4096\n")
    with pytest.raises(OutOfMemoryError), watch(config=config, lang="en"):
        raise OutOfMemoryError(OOM)
    err = capsys.readouterr().err
    assert "All details: --verbose" not in err
    (command,) = re.findall(r"`(oomdoctor explain .*?)`", err)
    assert str(config) in command
    (tmp_path / "job.log").write_text(f"{err}OutOfMemoryError: {OOM}\n")
    done = forked(ENTRY, *shlex.split(command)[1:], "--lang", "en", cwd=tmp_path)
    assert done.returncode == 0 and "4.64 GiB requested" in done.stdout, done.stdout + done.stderr


def test_colour_is_for_who_asks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The same variables as on the command line, and a stream that knows nothing of terminals is none."""
    for forced in ("1", "0"):
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("FORCE_COLOR", forced)
        with pytest.raises(RuntimeError), watch(lang="en"):
            raise RuntimeError(OOM)
        assert ("\x1b[1;97;41mOUT OF MEMORY" in capsys.readouterr().err) is (forced == "1")


def test_a_mistake_of_ours_does_not_replace_the_exception(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a reporter that fails nor an option that is wrong."""

    def broken(_: Diagnosis) -> None:
        raise ZeroDivisionError

    with pytest.raises(OutOfMemoryError), watch(report=broken):
        raise OutOfMemoryError(OOM)
    assert raised(OutOfMemoryError(OOM), model="no/such-model") == []
    assert capsys.readouterr().err.count("\n") == 2


def test_one_rank_answers_at_length(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The first that fails; the others say one sentence."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("WORLD_SIZE", "2")
    said = []
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        with pytest.raises(OutOfMemoryError), watch():
            raise OutOfMemoryError(OOM)
        said.append(capsys.readouterr().err)
    assert "OUT OF MEMORY" in said[0] and said[1].count("\n") == 1


# -- torch


def a_torch(**changes: Any) -> types.ModuleType:
    """What is asked of torch, with the names and shapes that it has."""
    cuda = types.SimpleNamespace(
        is_initialized=lambda: True,
        current_device=lambda: 1,
        memory_stats=lambda _device: {
            "allocated_bytes.all.current": 75709612032,
            "num_alloc_retries": 3,
            "num_ooms": 1,
            "segment.all.peak": 9,
        },
        get_device_properties=lambda _device: types.SimpleNamespace(name="NVIDIA A100-SXM4-80GB", total_memory=85094825984),
        mem_get_info=lambda *_: (1 << 30, 85094825984),
    )
    vars(cuda).update(changes)
    made = types.ModuleType("torch")
    vars(made).update(__version__="2.5.1+cu124", cuda=cuda)
    return made


def test_figures_of_torch_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Release, card, counters of the allocator and the number of processes, where torch is imported."""
    group = types.ModuleType("torch.distributed")
    vars(group).update(is_available=lambda: True, is_initialized=lambda: True, get_world_size=lambda: 16)
    monkeypatch.setitem(sys.modules, "torch", a_torch())
    monkeypatch.setitem(sys.modules, "torch.distributed", group)
    (found,) = raised(OutOfMemoryError(OOM))
    known = {fact.name: fact.value for fact in found.facts}
    assert str(known["version.torch"]).startswith("2.5.1")
    assert known["hardware.gpu"] == "A100-80GB" or "A100" in str(known["hardware.gpu"])
    assert known["parallel.world"] == 16 and known["log.table_retries"] == 3


def test_what_torch_has_recorded_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The snapshot of the live process, where its history is being recorded; without recording nothing is asked for."""
    block = {"size": 3 << 30, "requested_size": 3 << 30, "state": "active_allocated", "frames": []}
    segment = {"device": 0, "address": 1 << 46, "total_size": 3 << 30, "stream": 0, "segment_type": "large", "blocks": [block]}
    library = a_torch(memory=types.SimpleNamespace(_snapshot=lambda: {"segments": [segment], "device_traces": [[]]}))
    recording = [True]
    vars(library)["_C"] = types.SimpleNamespace(_cuda_isHistoryEnabled=lambda: recording[0])
    monkeypatch.setitem(sys.modules, "torch", library)
    (found,) = raised(OutOfMemoryError(OOM))
    assert str({fact.name: fact.value for fact in found.facts}["snapshot.allocated"]) == "3.00 GiB"
    recording[0] = False
    (found,) = raised(OutOfMemoryError(OOM))
    assert not [fact for fact in found.facts if fact.name.startswith("snapshot.")]


def test_the_driver_tells_the_capacity_that_a_message_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cuBLAS says holds no figure at all."""
    monkeypatch.setitem(sys.modules, "torch", a_torch())
    (found,) = raised(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"))
    known = {fact.name: fact.value for fact in found.facts}
    assert "79.25 GiB" in str(known["hardware.capacity"])


def test_no_question_to_torch_can_hurt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The card is in trouble: each question may fail for itself."""

    def fails(*_: object) -> None:
        raise RuntimeError("CUDA error: device-side assert triggered")

    for changes in (
        {"memory_stats": fails},
        {"get_device_properties": fails},
        {"is_initialized": fails},
        {"is_initialized": lambda: False},
    ):
        monkeypatch.setitem(sys.modules, "torch", a_torch(**changes))
        assert len(raised(OutOfMemoryError(OOM))) == 1
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    assert len(raised(OutOfMemoryError(OOM))) == 1
    assert process_memory.world_size() is None


def test_nothing_heavy_is_imported() -> None:
    """Neither torch nor a trainer, and of ours only what a block needs to wait."""
    code = (
        "import sys\nfrom diagnose import watch, install_excepthook\nfrom diagnose.live import callbacks\n"
        "install_excepthook()\nwith watch(): callbacks.trainer_callback(); callbacks.lightning_callback()\n"
        "print(*[name for name in ('torch', 'transformers', 'lightning', 'diagnose.pipeline', 'yaml') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout == "\n"


# -- hooks


def test_the_hook_answers_after_the_traceback() -> None:
    """The process ends as it would have; a thread too."""
    code = (
        f"import diagnose, threading\ndiagnose.install_excepthook()\n"
        f"def train(): raise RuntimeError({OOM!r})\n"
        "thread = threading.Thread(target=train); thread.start(); thread.join()\n"
        "train()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env={"LANG": "C.UTF-8", "PATH": ""})
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.count("OUT OF MEMORY (") == 2
    assert done.stderr.index("RuntimeError: CUDA") < done.stderr.index("OUT OF MEMORY (")


def test_the_hook_leaves_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook that was there is called; taking ours away leaves what it found."""
    seen: list[BaseException] = []
    found: list[Diagnosis] = []
    monkeypatch.setattr(sys, "excepthook", lambda _kind, error, _trace: seen.append(error))
    before, in_threads = sys.excepthook, threading.excepthook
    remove = install_excepthook(report=found.append)
    error = OutOfMemoryError(OOM)
    sys.excepthook(type(error), error, None)
    assert seen == [error] and len(found) == 1
    remove()
    assert (sys.excepthook, threading.excepthook) == (before, in_threads)


# -- trainers


def a_trainer_library(monkeypatch: pytest.MonkeyPatch, name: str, base: str, hooks: tuple[str, ...]) -> type:
    def hook(self: object, *_: object, **__: object) -> None: ...

    made = type(base, (), dict.fromkeys(hooks, hook))
    module = types.ModuleType(name)
    setattr(module, base, made)
    monkeypatch.setitem(sys.modules, name, module)
    return made


def test_the_callback_of_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one of the library's; its notes (step, evaluation, arguments) are part of what `watch` explains."""
    hooks = ("on_init_end", "on_train_begin", "on_step_begin", "on_prediction_step", "on_evaluate", "on_save", "on_log", "on_train_end")
    base = a_trainer_library(monkeypatch, "transformers", "TrainerCallback", hooks)
    callback = callbacks.trainer_callback()
    assert issubclass(type(callback), base)
    arguments = types.SimpleNamespace(
        to_dict=lambda: {
            "per_device_train_batch_size": 4,
            "gradient_accumulation_steps": 8,
            "bf16": True,
            "output_dir": "out",
            "x": object(),
        }
    )
    state = types.SimpleNamespace(global_step=12, max_steps=500)
    for event in ("on_init_end", "on_train_begin", "on_step_begin", "on_log", "on_prediction_step"):
        getattr(callback, event)(arguments, state, types.SimpleNamespace(), model=None, logs={})
    (found,) = raised(OutOfMemoryError(OOM))
    known = {fact.name: fact.value for fact in found.facts}
    assert known["train.micro_batch_size"] == 4 and known["log.step"] == 12
    assert STATE.evaluating
    callback.on_evaluate(arguments, state, None, metrics={})
    assert not STATE.evaluating


def test_without_the_library_every_event_is_taken() -> None:
    """A trainer calls each event of its release by name."""
    callback = callbacks.trainer_callback()
    assert callback.on_pre_optimizer_step(None, None, None, model=None) is None
    assert not hasattr(callback, "items")


@pytest.mark.parametrize("name", ["lightning.pytorch", "pytorch_lightning"])
def test_the_callback_of_lightning(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """`on_exception(trainer, pl_module, exception)` explains; the trainer raises it again."""
    base = a_trainer_library(monkeypatch, name, "Callback", ("setup", "on_exception", "on_validation_start", "on_train_batch_start"))
    found: list[Diagnosis] = []
    callback = callbacks.lightning_callback(report=found.append)
    assert issubclass(type(callback), base)
    trainer = types.SimpleNamespace(global_step=7, max_steps=-1)
    callback.on_train_batch_start(trainer, None, None, 0)
    callback.on_validation_start(trainer, None)
    callback.on_exception(trainer, None, KeyboardInterrupt())
    callback.on_exception(trainer, None, OutOfMemoryError(OOM))
    assert len(found) == 1


def test_notes_survive_strange_trainers() -> None:
    """State without numbers, arguments that cannot be written."""
    callback: Any = callbacks.trainer_callback()
    strange: list[Callable[[], Any]] = [lambda: None, lambda: object(), lambda: types.SimpleNamespace(global_step="x", max_steps=None)]
    for make in strange:
        callback.on_train_begin(make(), make(), make())
        callback.on_step_begin(make(), make(), make())
    assert len(raised(OutOfMemoryError(OOM))) == 1


# -- pytest


def test_the_plugin_adds_a_section(tmp_path: Path) -> None:
    """Only to a test that failed of memory, and only where it was switched on."""
    (tmp_path / "test_x.py").write_text(
        f"def test_oom():\n    raise RuntimeError({OOM!r})\ndef test_other():\n    assert 0\ndef test_good():\n    pass\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_x.py"]
    env = {"PYTHONPATH": str(ROOT), "PATH": "", "LANG": "C.UTF-8"}
    without = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=env)
    done = subprocess.run([*words, "-p", "diagnose.live.pytest_plugin"], cwd=tmp_path, capture_output=True, text=True, env=env)
    assert "2 failed, 1 passed" in without.stdout and "2 failed, 1 passed" in done.stdout
    assert without.stdout.count("out of memory -") == 0
    assert done.stdout.count(" out of memory ---") == 1 and "OUT OF MEMORY" in done.stdout


def test_a_chain_that_bites_its_tail_ends() -> None:
    """Exceptions may be tied into a ring."""
    one, other = ValueError("a"), ValueError("b")
    one.__cause__, other.__cause__ = other, one
    assert watching.exception_chain(one) == [one, other]
