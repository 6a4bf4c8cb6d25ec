"""What is advised where the host ran out: what needs no new hardware first, and back to the card only what a card holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diagnose import explain
from diagnose.plan.remedies.remedy import Outcome, Remedy

KILLED = "torch.distributed.elastic: failed (exitcode: -9) local_rank: 0 (pid: 12345) of binary: /opt/env/bin/python\n"
NODE = "[99.1] Out of memory: Killed process 12345 (python) total-vm:337241088kB, anon-rss:294361088kB, file-rss:0kB, shmem-rss:0kB\n"
OFFLOADED = (
    "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\ndo_train: true\nfinetuning_type: full\nbf16: true\ntemplate: qwen\n"
    "per_device_train_batch_size: 1\ncutoff_len: 2048\ndeepspeed: examples/deepspeed/ds_z3_offload_config.json\n"
)


@pytest.fixture
def asked(tmp_path: Path) -> Any:
    def ask(log: str = KILLED, config: str = OFFLOADED, **given: Any) -> Outcome:
        path, settings = tmp_path / "error.log", tmp_path / "train.yaml"
        path.write_text(log, encoding="utf-8")
        settings.write_text(config, encoding="utf-8")
        return explain(path, configs=[settings], **given).outcome

    return ask


def remedy(found: Outcome, name: str) -> Remedy:
    return next(each for each in found.remedies if each.id == name)


def test_what_the_cards_have_room_for_comes_back_to_them(asked: Any) -> None:
    """States of 7B over eight cards of 80 GB; nobody has to doubt that they have room."""
    found = asked(gpu="A100-80GB", gpus=8)
    first = found.remedies[0]
    assert first.id == "disable_offload" and "where the cards have room" not in first.title.en
    assert "less of host RAM" in first.why.en and "each card then needs" in first.why.en and "usable" in first.why.en
    assert [each.id for each in found.remedies].index("more_host_ram") > 0


def test_where_nobody_names_the_card_the_limit_is_looked_at_first(asked: Any) -> None:
    found = asked(gpus=8)
    assert found.remedies[0].id == "more_host_ram"
    back = remedy(found, "disable_offload")
    assert "where the cards have room" in back.title.en and "each card then needs" in back.why.en


def test_what_no_card_has_room_for_is_no_advice_by_hand_either(asked: Any) -> None:
    found = asked(gpu="T4", gpus=1)
    assert "disable_offload" not in [each.id for each in found.remedies]
    assert any(each.id == "disable_offload" and "would not fit" in each.reason.en for each in found.rejected)


@pytest.mark.parametrize(("ram", "fits"), [("64 GiB", "unknown"), ("8 GiB", "no")])
def test_what_is_still_too_much_for_the_node_is_not_enough(tmp_path: Path, ram: str, fits: str) -> None:
    """14 GiB of weights stay on the host where the optimizer comes back."""
    log, settings, engine = tmp_path / "error.log", tmp_path / "train.yaml", tmp_path / "ds.json"
    log.write_text(KILLED, encoding="utf-8")
    settings.write_text(OFFLOADED.replace("examples/deepspeed/ds_z3_offload_config.json", "ds.json"), encoding="utf-8")
    engine.write_text(
        '{"bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}, '
        '"offload_param": {"device": "cpu"}}}',
        encoding="utf-8",
    )
    found = explain(log, configs=[settings, engine], gpu="A100-80GB", gpus=8, set={"host.ram": ram}).outcome
    assert remedy(found, "disable_offload").fits == fits


def test_a_full_node_has_no_limit_to_raise(asked: Any) -> None:
    found = asked(NODE, gpu="A100-80GB", gpus=8)
    more = remedy(found, "more_host_ram")
    assert more.rule == "larger-node" and more.price.effort == "hardware" and found.remedies[-1] == more


def test_fewer_processes_hold_as_much_of_what_is_divided_among_them(asked: Any) -> None:
    refused = {each.id: each.reason.en for each in asked(gpus=8).rejected}
    assert "with fewer on the node each holds more" in refused["fewer_processes"]


def test_saving_is_advised_on_only_where_it_was_going_on(asked: Any) -> None:
    plain = OFFLOADED.partition("deepspeed:")[0]
    saving = asked("Saving model checkpoint to out/checkpoint-500\n" + KILLED, plain)
    assert saving.remedies[0].id == "save_config_change"
    assert "save_config_change" not in [each.id for each in asked(KILLED, plain).remedies]


def test_a_file_that_moves_more_than_was_asked_for_is_judged_as_a_whole(asked: Any) -> None:
    """The weights alone would come back to a card of 40 GB; the file that leaves them there leaves the optimizer there too."""
    found = asked(gpu="A100-40GB", gpus=1)
    assert "disable_offload" not in [each.id for each in found.remedies]
    assert any(each.id == "disable_offload" and "would not fit" in each.reason.en for each in found.rejected)
