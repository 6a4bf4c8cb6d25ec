"""Tracebacks as people paste them: as links, without indentation, below the message, cut off, or one line of source alone."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest
from collected import for_each
from hypothesis import given
from hypothesis import strategies as st

from diagnose.parse import log_reader
from diagnose.parse.model.event import Event
from diagnose.parse.model.reading import Reading
from diagnose.pipeline import explain
from diagnose.scan import log_scan
from diagnose.scan.source import Source
from diagnose.units import Size

MESSAGE = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU {gpu} has a total capacity of 14.75 GiB of which "
    "{free} is free. Including non-PyTorch memory, this process has {own} memory in use. Of the allocated memory {held} is allocated by "
    "PyTorch, and 186.00 MiB is reserved by PyTorch but unallocated."
)
OLD = (
    "RuntimeError: {device} out of memory. Tried to allocate 2.29 GiB ({unit} 0; 31.72 GiB total capacity; 19.22 GiB already allocated; "
    "1.88 GiB free; 28.32 GiB reserved in total by PyTorch)"
)


def message(asked: str = "9.47 GiB", gpu: int = 0, free: str = "3.78 GiB", own: str = "10.95 GiB", held: str = "10.64 GiB") -> str:
    return MESSAGE.format(asked=asked, gpu=gpu, free=free, own=own, held=held)


def read(text: str) -> Reading:
    return log_reader.read_logs([log_scan.scan(Source.text(text, "job.log"))])


def only(text: str) -> Event:
    events = read(text).events
    assert len(events) == 1, events
    return events[0]


def fact(text: str, name: str) -> object:
    return next((each.value for each in explain(text).facts if each.name == name), None)


def test_the_line_that_rich_marks_in_a_box_without_its_head() -> None:
    """The part of a box that was pasted: its last lines of source, one of them marked."""
    lines = [
        "│    628 │   │   )                                                       │",
        "│ ❱  629 │   │   attention_probs = attention_scores.softmax(dim=-1)       │",
        "│    630 │   │                                                           │",
        "│    632 │   │   attention_probs = attention_probs.to(value.dtype)       │",
        "╰──────────────────────────────────────────────────────────────────────╯",
        message(),
    ]
    assert only("\n".join(lines)).phase == "attention"
    assert fact("\n".join(lines), "model.attention") == "eager"
    assert only("\n".join(lines[2:])).phase == "unknown"


@pytest.mark.parametrize(
    ("file", "function", "statement", "doing"),
    [
        ("torch/nn/parallel/distributed.py", "_ddp_init_helper", "self.reducer = dist.Reducer(", "create_buckets"),
        ("torch/optim/optimizer.py", "load_state_dict", "state_dict = deepcopy(state_dict)", "load_optimizer"),
        ("mmdet/structures/bbox/bbox_overlaps.py", "bbox_overlaps", "wh = fp16_clamp(rb - lt, min=0)", "match_boxes"),
    ],
)
def test_what_a_frame_shows_the_job_doing(file: str, function: str, statement: str, doing: str) -> None:
    lines = ["Traceback (most recent call last):", f'  File "/x/{file}", line 3, in {function}', f"    {statement}", message()]
    assert fact("\n".join(lines), "log.doing") == doing


def test_frames_that_a_notebook_in_the_browser_made_links_of() -> None:
    """Colab's traceback, copied into Markdown: places are links, and so are line numbers in VS Code."""
    lines = [
        "[<ipython-input-7-3d62>](https://localhost:8080/#) in <cell line: 1>()",
        "----> 1 trainer_stats = trainer.train()",
        "",
        "[/usr/lib/python3.10/dist-packages/accelerate/utils/operations.py](https://localhost:8080/#) in _convert_to_fp32(tensor)",
        "    780     def _convert_to_fp32(tensor):",
        "--> [781](vscode-remote://ssh-remote/x?line=780)         return tensor.float()",
        "    782 ",
        "",
    ]
    event = only("\n".join([*lines, message().replace("torch.cuda.", "")]))
    assert [(frame.function, frame.line) for frame in event.frames] == [("<module>", 1), ("_convert_to_fp32", 781)]
    assert event.frames[-1].statement == "return tensor.float()"
    assert event.phase == "loss"  # what a model returns is its logits


def test_frames_that_lost_their_indentation() -> None:
    """The line below a whole place is its statement, not the rest of a place that a console cut."""
    lines = [
        'File "/x/site-packages/bitsandbytes/nn/modules.py", line 336, in _save_to_state_dict',
        "self.weight.data = undo_layout(self.state.CxB, self.state.tile_indices)",
        'File "/x/site-packages/bitsandbytes/autograd/_functions.py", line 96, in undo_layout',
        "outputs = torch.empty_like(tensor)",
    ]
    event = only("\n".join([*lines, message()]))
    assert [frame.function for frame in event.frames] == ["_save_to_state_dict", "undo_layout"]
    assert event.frames[0].statement.startswith("self.weight.data")
    assert event.phase == "checkpoint_save"


def test_a_list_of_frames_below_the_message() -> None:
    """pybind11 prints them innermost first, after the words of the error."""
    lines = [
        "At:",
        "  /x/torch/nn/functional.py(1243): dropout",
        "  /x/torch/nn/modules/module.py(1130): _call_impl",
        "  /y/model.py(130): forward",
        "done",
    ]
    event = only("\n".join([message(), "", *lines]))
    assert [(frame.function, frame.line) for frame in event.frames] == [("forward", 130), ("_call_impl", 1130), ("dropout", 1243)]
    assert event.phase == "forward"


CUT = ["Traceback (most recent call last):", '  File "/x/workflow.py", line 52, in run', "    model = load_model(tokenizer)"]


@pytest.mark.parametrize("end", ["", "\n```\nany ideas?", '\n  File "/x/load'])
def test_a_traceback_that_the_text_cuts_off_below_the_message(end: str) -> None:
    """Of one rank the end was pasted, of the next the beginning."""
    load = '  File "/x/modeling_utils.py", line 4225, in from_pretrained'
    event = only("\n".join([message(), *(f"[rank5]: {line}" for line in [*CUT, load])]) + end)
    assert (event.phase, event.rank) == ("model_load", None)
    assert [frame.function for frame in event.frames] == ["run", "from_pretrained"]


def test_a_traceback_that_says_what_it_ends_in_is_another_failure() -> None:
    assert only("\n".join([message(), *CUT, "KeyError: 'text'"])).frames == ()


@for_each(
    "line, phase",
    [
        ("denom = (exp_avg_sq.sqrt() / bias_correction2_sqrt).add_(eps)", "optimizer_step"),
        ("`denom = (exp_avg_sq.sqrt() / bias_correction2_sqrt).add_(eps)", "optimizer_step"),
        ("    ret = input.softmax(dim, dtype=dtype)", "attention"),
        ("    loss.backward()", "backward"),
        ("It dies like this every time, what can I do?", "unknown"),
    ],
)
def test_one_line_of_source_without_its_frame(line: str, phase: str) -> None:
    event = only(f"some words\n{line}\n{message()}")
    assert (event.phase, event.frames) == (phase, ())


DEFAULT_DEVICE = (
    '  File "/usr/lib/python3.12/dist-packages/torch/utils/_device.py", line 103, in __torch_function__\n    return func(*args, **kwargs)\n'
)


@for_each(
    "outside, phase",
    [
        ("", "model_load"),
        ('  File "/srv/sglang/srt/layers/attention/triton_backend.py", line 90, in forward\n    torch.zeros(size)\n', "forward"),
    ],
)
def test_a_tensor_made_under_a_default_device_is_one_of_the_model(outside: str, phase: str) -> None:
    """Cut down to torch's last frame a traceback still tells that a model was built; what stands round it tells better."""
    assert only(outside + DEFAULT_DEVICE + message()).phase == phase


def test_the_line_of_another_rank_says_nothing() -> None:
    assert only(f"[rank1]: loss.backward()\n[rank0]: {message()}").phase == "unknown"


def test_equal_failures_share_the_traceback_that_is_whole() -> None:
    """Of the first rank only the last line was pasted; the second tells where both were."""
    second = ['  File "/x/trainer.py", line 10, in step', "    loss.backward()", message(gpu=1)]
    event = only("\n".join([f"[rank0]: {message(gpu=0)}", *(f"[rank1]: {line}" for line in second)]))
    assert (event.ranks, event.phase) == ((0, 1), "backward")
    assert [frame.function for frame in event.frames] == ["step"]
    assert event.evidence[0].line == 1


def test_the_engine_that_wakes_up_is_known_by_its_traceback() -> None:
    """Its allocator prints a line of C++ in one process, and Ray the traceback in another."""
    words = "CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62"
    frame = '  File "/x/vllm/device_allocator/cumem.py", line 207, in wake_up'
    pid = "(ActorModelRayActor pid=2) "
    text = f"(LLMRayActor pid=1) {words}\n{pid}{frame}\n{pid}    create_and_map(handle)\n{pid}RuntimeError: {words}"
    assert only(text).phase == "weight_sync"
    diagnosis = explain(text)
    assert [cause.cause for cause in diagnosis.judgement.causes] == ["rollout_engine"]
    assert "lower_gpu_memory_utilization" in [remedy.id for remedy in diagnosis.outcome.remedies]


@pytest.mark.parametrize(("device", "unit", "old"), [("CUDA", "GPU", True), ("HIP", "GPU", True), ("NPU", "NPU", None)])
def test_the_wording_tells_releases_without_expandable_segments(device: str, unit: str, old: bool | None) -> None:
    """Torch before 2.1 stops at the switch as one that it does not know; Ascend kept the old wording."""
    text = OLD.format(device=device, unit=unit)
    assert fact(text, "log.torch_before_2_1") is old
    offered = [remedy.id for remedy in explain(text).outcome.remedies]
    assert ("expandable_segments" in offered) is (old is None)


def test_what_the_process_itself_holds_beside_torch_is_nobody_elses() -> None:
    """An engine's cache need not be torch's: the message says whose it is."""
    own = message(asked="296.00 MiB", free="118.25 MiB", own="78.90 GiB", held="6.01 GiB").replace("14.75 GiB", "79.11 GiB")
    foreign = fact(own, "log.foreign")
    assert isinstance(foreign, Size) and foreign.high < 2**30
    assert "other_process" not in [cause.cause for cause in explain(own).judgement.causes]


def test_weights_that_were_loaded_are_no_more_than_was_allocated() -> None:
    """The trainer begins once the model is on the card: 5.7 billion parameters in 12.9 GiB are not held in 16 bits."""
    banner = "==((====))==  Unsloth - 2x faster free finetuning | Num GPUs used = 1"
    rows = ' "-____-"     Trainable parameters = 1,361,753,856 of 5,661,833,328 (24.05% trained)'
    text = "\n".join([banner, rows, message(asked="2.00 GiB", free="1.36 GiB", own="13.38 GiB", held="12.89 GiB")])
    assert fact(text, "ledger.verdict") == "above"
    assert "weights" not in [cause.cause for cause in explain(text).judgement.causes]
    assert "weights" in [cause.cause for cause in explain(text.replace(banner, "")).judgement.causes]


def test_weights_that_a_missing_file_may_shard_contradict_nothing() -> None:
    """The command names a DeepSpeed file that was not given: more weights than were allocated say nothing against the command."""
    command = (
        "cmd = python -u -m deepspeed.launcher.launch --world_info=eyJsb2NhbGhvc3QiOlswLDEsMiwzXX0= train.py --deepspeed ./zero.json "
        "--model_name_or_path liuhaotian/llava-v1.5-13b --bf16 True --lora_enable True --per_device_train_batch_size 4 --output_dir out"
    )
    text = f"{command}\n    loss.backward()\n{message()}"
    assert fact(text, "config.engine_file_missing") is True
    assert "config_not_effective" not in [cause.cause for cause in explain(text).judgement.causes]
    whole = text.replace("--deepspeed ./zero.json ", "")
    assert "config_not_effective" in [cause.cause for cause in explain(whole).judgement.causes]


def test_a_path_of_windows_is_a_path() -> None:
    """Weights that are moved to the card while everything is prepared."""
    lines = [
        r'  File "D:\sd\train_network.py", line 194, in train',
        "    unet, optimizer = accelerator.prepare(",
        r'  File "D:\sd\venv\lib\site-packages\accelerate\accelerator.py", line 876, in prepare',
        r'  File "D:\sd\venv\lib\site-packages\torch\nn\modules\module.py", line 987, in convert',
        "    return t.to(device)",
    ]
    text = "\n".join([*lines, message(asked="20.00 MiB", free="0 bytes", own="14.70 GiB", held="14.30 GiB")])
    assert fact(text, "log.doing") == "move_weights"
    assert [cause.cause for cause in explain(text).judgement.causes] == ["weights"]


# -- the cards that DeepSpeed's launcher names


def launched(coded: bytes) -> dict[str, object]:
    text = f"cmd = python -u -m deepspeed.launcher.launch --world_info={coded.decode()} train.py --x 1\n{message()}"
    return {each.name: each.value for each in read(text).facts if each.name.startswith("parallel.")}


def test_the_processes_that_the_launcher_starts() -> None:
    coded = b64encode(json.dumps({"node-1": [0, 1, 2, 3], "node-2": [0, 1]}).encode())
    assert launched(coded) == {"parallel.world": 6, "parallel.nodes": 2}


@for_each("said", [b"[" * 30000, b"[1, 2]", b'{"a": 3}', b"\xff\xfe\x00\x01\x02\x03"])
def test_what_is_no_list_of_cards_says_nothing(said: bytes) -> None:
    assert launched(b64encode(said)) == {}


@given(st.text("ABCabc012+/=_-", max_size=60))
def test_no_option_raises(coded: str) -> None:
    launched(coded.encode())


def test_the_frames_of_what_was_raised_from_a_message() -> None:
    """The traceback above the message is missing; what Python chained to it ran on the same stack."""
    chained = """The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/opt/tensorrt_llm/executor/worker.py", line 364, in worker_main
    worker = worker_cls(
  File "/opt/tensorrt_llm/executor/base_worker.py", line 177, in setup_engine
    self.engine = _create_py_executor(
RuntimeError: Executor worker returned error
"""
    event = next(event for event in read(f"{message()}\n\n{chained}").events if event.family == "torch_cuda")
    assert ([frame.function for frame in event.frames], event.phase) == (["worker_main", "setup_engine"], "init")
