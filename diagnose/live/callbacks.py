"""Callbacks for trainers. Their base classes are those of the libraries that the job has imported; none is imported here."""

# ruff: noqa: ARG002 - the signatures are the libraries'

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from diagnose.live.trainer_state import NOTED
from diagnose.live.watching import Watch


class TrainerNotes:
    """Events of transformers.Trainer. It has none for an exception: what is noted here, `watch` or `install_excepthook` makes use of."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        NOTED.forget()
        NOTED.take(args)
        self._count(state)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        NOTED.evaluating = False
        self._count(state)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._count(state)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        NOTED.evaluating = True

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        NOTED.evaluating = False

    def on_predict(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        NOTED.evaluating = False

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        NOTED.evaluating = False

    def _count(self, state: Any) -> None:
        NOTED.count(getattr(state, "global_step", None), getattr(state, "max_steps", None))

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("on_"):  # an event of this or a later release
            return _nothing
        raise AttributeError(name)


class LightningNotes:
    """Events of Lightning's Trainer; `on_exception` is called before the exception goes on."""

    watching: Watch

    def on_train_batch_start(self, trainer: Any, pl_module: Any, *_: Any, **__: Any) -> None:
        NOTED.evaluating = False
        NOTED.count(getattr(trainer, "global_step", None), getattr(trainer, "max_steps", None))

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        NOTED.evaluating = True

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        NOTED.evaluating = False

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.watching.passing(exception)


def trainer_callback() -> Any:
    """For `Trainer(callbacks=[...])` of transformers: notes step, evaluation and arguments for `watch` and `install_excepthook`."""
    return _made("OomdoctorCallback", TrainerNotes, "TrainerCallback", ("transformers", "transformers.trainer_callback"))()


def lightning_callback(config: Any = (), **options: Any) -> Any:
    """For `Trainer(callbacks=[...])` of Lightning: explains an exception of memory. Takes what `watch` takes."""
    places = ("lightning.pytorch.callbacks", "lightning.pytorch", "pytorch_lightning")
    made = _made("OomdoctorCallback", LightningNotes, "Callback", places)()
    made.watching = Watch(config, **options)
    return made


def _made(name: str, notes: type, wanted: str, places: tuple[str, ...]) -> Any:
    """The class of notes, on top of the base classes that its library calls `wanted`, where it is imported."""
    found = [getattr(sys.modules[place], wanted, None) for place in places if place in sys.modules]
    bases = list(dict.fromkeys(base for base in found if isinstance(base, type)))
    return type(name, (notes, *bases), {"__module__": __name__})


def _nothing(*_: Any, **__: Any) -> None:
    return None
