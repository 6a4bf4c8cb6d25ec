"""A tensor that an object moves to the card while it is built: no batch was seen, unless a pass or a training loop builds the object."""

from __future__ import annotations

import pytest

from diagnose.parse.frames.activity import activity_of_frames
from diagnose.parse.frames.phases import phase_of_frames
from diagnose.parse.model.event import Frame


def frames(*calls: tuple[str, str]) -> tuple[Frame, ...]:
    return tuple(Frame("own.py", 1, function, statement) for function, statement in calls)


MOVES = ("__init__", "self.data = data.view(bsz, -1).to(device)")


@pytest.mark.parametrize(
    ("outside", "phase"),
    [
        (("<module>", "run()"), "init"),
        (("forward", "mask = Mask(x)"), "forward"),
        (("train_one_epoch", "bank = Bank(x)"), ""),
        (("evaluate", "bank = Bank(x)"), "eval"),
    ],
)
def test_who_builds_the_object_tells_whether_a_batch_was_seen(outside: tuple[str, str], phase: str) -> None:
    assert phase_of_frames(frames(outside, MOVES)) == phase


@pytest.mark.parametrize(
    ("statement", "doing"),
    [
        ("self.history = self.history.to(self.device)", "place_data"),
        ("self.ids = torch.LongTensor(ids).cuda()", "place_data"),
        ("self.rows = torch.zeros((n, 84, 84), device=device)", "place_data"),
        ("self.backbone = ResNet(3).cuda()", ""),
        ("self.table = Embedding(10, 512).cuda()", ""),
        ("self.ref_model = self.ref_model.to(device)", ""),
        ("self.count = 0", ""),
    ],
)
def test_data_is_told_from_weights(statement: str, doing: str) -> None:
    assert activity_of_frames(frames(("__init__", statement))) == doing
