"""Callbacks for trainers. Their base classes come from the libraries that the job has imported; none is imported here."""

# ruff: noqa: ARG002 - the signatures are the libraries'

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from diagnose.live.trainer_state import STATE
from diagnose.live.watching import Watch


class TransformersEvents:
    """Events of transformers.Trainer. It has none for exceptions: the recorded state is used by `watch` and `install_excepthook`."""

    def on_train_begin(self, args: object, state: object, control: object, **_: object) -> None:
        STATE.reset()
        STATE.set_arguments(args)
        self._record_step(state)

    def on_step_begin(self, args: object, state: object, control: object, **_: object) -> None:
        STATE.evaluating = False
        self._record_step(state)

    def on_step_end(self, args: object, state: object, control: object, **_: object) -> None:
        self._record_step(state)

    def on_prediction_step(self, args: object, state: object, control: object, **_: object) -> None:
        STATE.evaluating = True

    def on_evaluate(self, args: object, state: object, control: object, **_: object) -> None:
        STATE.evaluating = False

    def on_predict(self, args: object, state: object, control: object, **_: object) -> None:
        STATE.evaluating = False

    def on_train_end(self, args: object, state: object, control: object, **_: object) -> None:
        STATE.evaluating = False

    def _record_step(self, state: object) -> None:
        STATE.set_step(getattr(state, "global_step", None), getattr(state, "max_steps", None))

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("on_"):  # an event of this or a later release
            return _ignore
        raise AttributeError(name)


class LightningEvents:
    """Events of Lightning's Trainer; `on_exception` is called before the exception propagates."""

    watcher: Watch

    def on_train_batch_start(self, trainer: object, pl_module: object, *_: object, **__: object) -> None:
        STATE.evaluating = False
        STATE.set_step(getattr(trainer, "global_step", None), getattr(trainer, "max_steps", None))

    def on_validation_start(self, trainer: object, pl_module: object) -> None:
        STATE.evaluating = True

    def on_validation_end(self, trainer: object, pl_module: object) -> None:
        STATE.evaluating = False

    def on_exception(self, trainer: object, pl_module: object, exception: BaseException) -> None:
        self.watcher.handle(exception)


def trainer_callback() -> Any:
    """For `Trainer(callbacks=[...])` of transformers: records step, evaluation and arguments for `watch` and `install_excepthook`."""
    return _make_class("OomdoctorCallback", TransformersEvents, "TrainerCallback", ("transformers", "transformers.trainer_callback"))()


def lightning_callback(config: Any = (), **options: Any) -> Any:
    """For `Trainer(callbacks=[...])` of Lightning: explains memory errors. Takes the arguments of `watch`."""
    modules = ("lightning.pytorch.callbacks", "lightning.pytorch", "pytorch_lightning")
    callback = _make_class("OomdoctorCallback", LightningEvents, "Callback", modules)()
    callback.watcher = Watch(config, **options)
    return callback


def _make_class(name: str, events: type, base_name: str, modules: tuple[str, ...]) -> Any:
    """A subclass of `events` and of the class `base_name` in each of the modules that is imported."""
    candidates = [getattr(sys.modules[module], base_name, None) for module in modules if module in sys.modules]
    bases = list(dict.fromkeys(base for base in candidates if isinstance(base, type)))
    return type(name, (events, *bases), {"__module__": __name__})


def _ignore(*_: object, **__: object) -> None:
    return None
