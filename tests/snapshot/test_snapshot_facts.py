"""What a memory snapshot says of a failure: its sums, what would have fitted, the tensor, and the same through every surface."""

from __future__ import annotations

import gzip
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from collected import for_each
from forked import ENTRY, forked
from snapshots_made import (
    GIB,
    LOGITS,
    MESSAGE,
    MIB,
    SITE,
    WEIGHTS,
    alloc,
    frames,
    free,
    made,
    oom,
    segment,
    used,
)

from diagnose.diagnosis import Diagnosis
from diagnose.pipeline import explain
from diagnose.render import formats
from diagnose.render.data.pydantic_report import Report
from diagnose.render.parts import card_bar, redaction
from diagnose.render.parts.view import PLAIN
from diagnose.scan.source import Source
from diagnose.snapshot import snapshot_reader
from diagnose.snapshot.measure import Snapshot, tensor_size
from diagnose.snapshot.stack_frames import Frame, code_frame, memory_group


def seen(of: Any) -> Snapshot:
    return snapshot_reader.read(Source.text(pickle.dumps(of), "s.pickle"))


LOG = f"""  File "{SITE}/transformers/loss/loss_utils.py", line 36, in fixed_cross_entropy
    loss = nn.functional.cross_entropy(source, target)
  File "{SITE}/torch/nn/functional.py", line 3479, in cross_entropy
    return torch._C._nn.cross_entropy_loss(
{MESSAGE}
"""
SET = {"train.max_seq_len": "8192", "train.micro_batch_size": "1"}


def explained(of: Any | None, log: str = LOG) -> Diagnosis:
    given = None if of is None else Source.text(pickle.dumps(of), "s.pickle")
    return explain(log, model="meta-llama/Llama-3.1-8B", set=SET, snapshot=given)


# -- what it shows


def test_sums_are_those_of_the_blocks() -> None:
    of = seen(made())
    assert (of.reserved, of.allocated, of.free) == (54 * GIB + 5400 * MIB, 54 * GIB, 5400 * MIB)
    assert of.requested == 54 * GIB - 100 and of.largest == 900 * MIB and of.unusable == 5400 * MIB


def test_the_request_is_known_to_the_grain() -> None:
    """torch rounds to 512 bytes before it records the failure; the printed figure is rounded to 2 MiB and then to 10 MiB."""
    failure = seen(made()).failure
    assert failure is not None and failure.device_free == 3 * GIB
    assert LOGITS in failure.size and failure.size.high - failure.size.low == 511
    assert failure.where == Frame(f"{SITE}/transformers/loss/loss_utils.py", 36, "fixed_cross_entropy")


def test_free_memory_of_its_pool_in_one_piece() -> None:
    """Whether defragmenting would have helped is the question that people have; another stream's free block helps nobody."""
    failure = seen(made(LOGITS, segment([free(6 * GIB)], stream=7), segment([free(5 * GIB)], pool=(0, 1)))).failure
    assert failure is not None and failure.pool_free == 5400 * MIB > failure.size.high > failure.pool_largest == 900 * MIB
    assert failure.elsewhere is not None and failure.elsewhere.largest == 6 * GIB and failure.elsewhere.stream == 7


def test_what_was_given_back_before_the_snapshot_was_taken() -> None:
    """A snapshot that an except clause takes shows the card after the stack was unwound: said, or the figures contradict the log."""
    of = seen(made(LOGITS, after=(alloc(2 * GIB, "free_completed"),)))
    assert of.failure is not None and of.failure.freed_since == 2 * GIB
    assert of.history is not None and of.history.last == of.requested + 2 * GIB


def test_groups_and_places() -> None:
    of = seen(made())
    assert dict(of.groups) == {"optimizer_states": 32 * GIB, "weights": 16 * GIB, "activations": 6 * GIB}
    assert [(site.group, site.count) for site in of.sites] == [("optimizer_states", 1), ("weights", 1), ("activations", 6)]
    assert of.sites[2].where == Frame(f"{SITE}/transformers/models/llama/modeling_llama.py", 163, "forward")


@for_each(
    "stack, group",
    [
        ([(f"{SITE}/torch/autograd/graph.py", "_engine_run_backward"), ("/w/t.py", "step")], "gradients"),
        ([(f"{SITE}/transformers/cache_utils.py", "update"), ("/w/modeling_x.py", "forward")], "kv_cache"),
        ([(f"{SITE}/torch/nn/modules/linear.py", "forward"), (f"{SITE}/torch/utils/checkpoint.py", "recompute_fn")], "activations"),
        ([(f"{SITE}/torch/distributed/distributed_c10d.py", "all_gather_into_tensor")], "comm_buffers"),
        ([("/w/data.py", "collate")], "unsorted"),
        ([("??", "at::empty")], "not_recorded"),
        ([], "not_recorded"),
    ],
)
def test_the_group_of_a_traceback(stack: list[tuple[str, str]], group: str) -> None:
    assert memory_group(tuple(Frame(file, 1, name) for file, name in stack)) == group


def test_a_place_is_where_a_person_wrote() -> None:
    """torch's own files and Python's are no place to change; where there is nothing else the innermost is named."""
    own = Frame(f"{SITE}/torch/nn/functional.py", 1, "linear")
    theirs = Frame("/w/train.py", 5, "main")
    assert code_frame((Frame("/usr/lib/python3.11/contextlib.py", 1, "inner"), own, theirs)) == theirs
    assert code_frame((own,)) == own
    assert code_frame(()) is None


def test_the_card_that_failed_is_shown() -> None:
    of = made()
    of["segments"] += [segment([used(90 * GIB, WEIGHTS)], device=1)]
    assert seen(of).device == 0 and seen(of).devices == (0, 1)
    of["device_traces"] = [[], [oom(GIB)]]
    assert seen(of).device == 1


def test_a_snapshot_without_history_shows_its_blocks() -> None:
    """Nothing recorded, or torch.cuda.memory_snapshot(), which is the list of segments alone."""
    of = made()
    for given in (of["segments"], {"segments": of["segments"], "device_traces": []}):
        found = seen(given)
        assert found.reserved > 0 and found.failure is None and found.history is None and found.unusable is None


def test_releases_before_frames_had_their_own_key() -> None:
    """torch 2.0: request and frames stand in `history`."""
    old = {"device": 0, "total_size": 4 * MIB, "stream": 0, "segment_type": "large"}
    block = {"size": 4 * MIB, "state": "active_allocated", "history": [{"addr": 1, "real_size": 3 * MIB, "frames": WEIGHTS}]}
    of = seen({"segments": [{**old, "blocks": [block]}], "device_traces": []})
    assert of.requested == 3 * MIB and dict(of.groups) == {"weights": 4 * MIB}


def test_rounding_to_divisions_leaves_a_wider_range() -> None:
    assert tensor_size(1 << 30, ()).low == (1 << 30) - 511
    assert tensor_size(1 << 30, (8,)).low == (1 << 29) + 1
    assert tensor_size(512, ()).low == 1


@pytest.mark.parametrize("pack", [gzip.compress])
def test_compressed_snapshots_are_read(pack: Any) -> None:
    assert snapshot_reader.read(Source.text(pack(pickle.dumps(made())), "s.pickle")).reserved == seen(made()).reserved


def test_a_pickle_of_something_else_says_so() -> None:
    from diagnose.errors import UserError

    for other in ({"a": 1}, [1, 2], None, "text"):
        with pytest.raises(UserError, match="no memory snapshot"):
            seen(other)


# -- what it says of the attribution


def test_the_exact_size_narrows_the_candidates() -> None:
    """Figures that print alike are told apart: fewer candidates, the right one first, and that is said."""
    without, found = explained(None), explained(made())
    assert len(found.attributions) < len(without.attributions)
    assert found.attributions[0].bytes == LOGITS and found.attributions[0].coincidence < without.attributions[0].coincidence
    assert found.snapshot is not None and found.snapshot.verdict == "confirmed"


def test_another_size_refutes_the_attribution() -> None:
    """The same printed figure, but bytes that no tensor of this run has."""
    found = explained(made(LOGITS + 500_000))
    assert found.snapshot is not None and found.snapshot.verdict == "refuted"
    assert not any(each.bytes == LOGITS for each in found.attributions)


def test_a_small_request_that_has_no_name_gets_one() -> None:
    """20.00 MiB stands for any tensor between 1 and 10 MiB; the snapshot knows which."""
    log = LOG.replace("3.91 GiB", "20.00 MiB")
    assert not explained(None, log).attributions
    found = explained(made(5 * MIB + 512), log)
    assert found.snapshot is not None and found.snapshot.verdict in ("named", "open")


def test_without_a_model_nothing_is_said_of_tensors() -> None:
    found = explain(LOG, snapshot=Source.text(pickle.dumps(made()), "s.pickle"))
    assert found.snapshot is not None and found.snapshot.verdict == "" and found.snapshot.failure is not None


def test_no_surface_takes_a_snapshot_by_path() -> None:
    """What a server, an agent or a chat is sent is text: an option that names a file is refused."""
    from pydantic import ValidationError

    from diagnose.surfaces.server.serve_requests import Options

    with pytest.raises(ValidationError):
        Options.model_validate({"snapshot": "/etc/passwd"})


def test_a_snapshot_of_another_failure_is_not_believed() -> None:
    found = explained(made(9 * GIB))
    assert [notice.code for notice in found.notices if notice.code == "other_snapshot"] == ["other_snapshot"]
    assert found.attributions == explained(None).attributions
    assert "snapshot.request" not in {fact.name for fact in found.facts}


def test_facts_name_the_file() -> None:
    facts = {fact.name: fact for fact in explained(made()).facts if fact.witness.source == "s.pickle"}
    assert {"snapshot.reserved", "snapshot.request", "snapshot.fragmentation", "snapshot.top_frame"} <= set(facts)
    assert facts["alloc.expandable_segments"].value is False


def test_a_snapshot_that_cannot_be_read_is_a_notice() -> None:
    """The log is explained all the same."""
    found = explain(LOG, snapshot=Source.text(b"\x80\x04cos\nsystem\n.", "evil.pickle"))
    assert found.verdict.status == "oom" and found.snapshot is None
    assert [notice.message.en.partition(":")[0] for notice in found.notices if notice.level == "error"] == ["evil.pickle"]


# -- through the surfaces


def shown_as(form: str, diagnosis: Diagnosis, lang: Any) -> str:
    return formats.RENDERERS[form](diagnosis, lang, PLAIN)


@for_each("lang", ["en", "zh"])
@for_each("form", ["text", "markdown", "html"])
def test_every_format_shows_it(form: str, lang: Any) -> None:
    shown = shown_as(form, explained(made()), lang)
    assert {"en": "Memory snapshot", "zh": "显存快照"}[lang] in shown
    assert "3.91 GiB" in shown and "loss_utils.py" in shown.replace("\\", "")


def test_the_report_is_typed() -> None:
    report = explained(made()).to_dict()
    assert Report.model_validate(report).to_dict() == report
    assert "snapshot" not in explained(None).to_dict()


def test_paths_in_frames_are_masked() -> None:
    """A frame names whose home it lies in."""
    plain, masked = explained(made()), redaction.mask_diagnosis(explained(made()))
    assert "alice" in json.dumps(plain.to_dict())
    assert "alice" not in json.dumps(masked.to_dict()) and masked.snapshot is not None
    assert masked.snapshot.reserved == 54 * GIB + 5400 * MIB


def test_escapes_in_a_frame_reach_no_terminal() -> None:
    """A file of this name would clear the screen."""
    of = made()
    of["segments"] += [segment([used(80 * GIB, frames(("/w/\x1b[2J\u202egpj.py", 1, "<b>x</b>")))])]
    for form in ("text", "markdown", "html"):
        shown = shown_as(form, explained(of), "en")
        assert "\x1b[2J" not in shown and "\u202e" not in shown and "<b>x</b>" not in shown.replace("`<b>x</b>`", "")


def test_on_the_command_line(tmp_path: Path) -> None:
    """The real process: answer, exit status, and one sentence for a file that is no snapshot."""
    log, file = tmp_path / "e.log", tmp_path / "s.pickle"
    log.write_text(LOG)
    file.write_bytes(pickle.dumps(made()))
    words = (ENTRY, "explain", str(log), "--lang", "en", "--format", "json")
    done = forked(*words, "--snapshot", str(file), cwd=tmp_path)
    assert done.returncode == 0 and json.loads(done.stdout)["snapshot"]["failure"]["requested"]["high"] >= LOGITS
    file.write_bytes(b"\x80\x04cos\nsystem\n.")
    done = forked(*words, "--snapshot", str(file), cwd=tmp_path)
    assert done.returncode == 0 and "refused" in done.stderr and done.stderr.count("\n") == 1
    done = forked(*words, "--snapshot", str(tmp_path / "none"), "--strict", cwd=tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr


def test_a_diagnosis_without_one_never_loads_the_room() -> None:
    """Start-up is made of imports."""
    code = f"import sys; from diagnose.pipeline import explain; explain({LOG!r}).to_dict(); print('diagnose.snapshot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


# -- without a log


def test_a_snapshot_alone_is_the_failure() -> None:
    """Request, card and phase as the log with torch's message would give them; the tensor is named the same."""
    alone = explain(model="meta-llama/Llama-3.1-8B", set=SET, snapshot=Source.text(pickle.dumps(made()), "s.pickle"))
    logged = explained(made())
    assert (alone.verdict.status, alone.verdict.family, alone.verdict.phase) == ("oom", "torch_cuda", logged.verdict.phase)
    assert alone.attributions[0].bytes == LOGITS == logged.attributions[0].bytes
    root = alone.root
    assert root is not None and root.free is not None and root.free.bytes == 3 * GIB and str(root.requested) == "3.91 GiB"
    assert {fact.name for fact in alone.facts if fact.witness.source == "s.pickle"} >= {"log.requested", "log.phase", "log.frame"}
    assert [given.kind for given in alone.inputs] == ["snapshot"]
    assert Report.model_validate(alone.to_dict()).to_dict() == alone.to_dict()


def test_what_was_given_back_counts_as_allocated_at_the_failure() -> None:
    """Taken by an except clause, the snapshot shows less than was there."""
    alone = explain(snapshot=Source.text(pickle.dumps(made(LOGITS, after=(alloc(2 * GIB, "free_completed"),))), "s.pickle"))
    assert alone.root is not None and alone.root.allocated is not None and alone.root.allocated.bytes == 56 * GIB


def test_the_bar_of_a_snapshot_alone_is_the_card_that_is_named() -> None:
    """What torch held as the snapshot says it; what is left of the card lies outside torch's allocator, nobody says whose it is."""
    alone = explain(gpu="A100-80GB", snapshot=Source.text(pickle.dumps(made()), "s.pickle"))
    shown = card_bar.build_card(alone, "en")
    assert shown is not None and shown.edge > 79 * GIB
    parts = {part.kind: part.bytes for part in shown.parts}
    torch = sum(
        size for kind, size in parts.items() if kind in ("weights", "gradients", "optimizer", "activations", "logits", "other", "allocated")
    )
    assert (torch, parts["unused"], parts["free"]) == (54 * GIB, 5400 * MIB, 3 * GIB)
    assert parts["outside"] > 16 * GIB and "foreign" not in parts
    assert card_bar.build_card(explain(snapshot=Source.text(pickle.dumps(made()), "s.pickle")), "en") is None


def test_a_snapshot_alone_without_a_failed_request_finds_nothing() -> None:
    of = {**made(), "device_traces": []}
    found = explain(snapshot=Source.text(pickle.dumps(of), "s.pickle"))
    assert found.verdict.status == "none" and found.exit_status == 1 and found.snapshot is not None


def test_a_snapshot_alone_that_cannot_be_read_is_an_error() -> None:
    from diagnose.errors import UserError

    with pytest.raises(UserError, match="refused"):
        explain(snapshot=Source.text(b"\x80\x04cos\nsystem\n.", "evil.pickle"))


def test_a_snapshot_alone_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "oom.pickle").write_bytes(pickle.dumps(made()))
    command = (ENTRY, "explain", "--snapshot")
    done = forked(*command, "oom.pickle", "--lang", "en", cwd=tmp_path)
    assert done.returncode == 0 and "3.91 GiB requested" in done.stdout and not done.stderr
    missing = forked(*command, "no.pickle", "--lang", "en", cwd=tmp_path)
    assert missing.returncode == 2 and not missing.stdout and missing.stderr.count("\n") == 1
