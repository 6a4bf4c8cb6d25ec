"""Noise: whatever launchers, loggers, viewers and people do to a message, its figures, card and family stay what they were."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable

from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from pace import within
from sweep import examples

from diagnose.parse import log_reader
from diagnose.parse.model.event import Event
from diagnose.scan import log_scan
from diagnose.scan.source import Source

SITE = "/opt/env/lib/python3.11/site-packages/"
FRAMES = [
    "Traceback (most recent call last):",
    f'  File "{SITE}transformers/trainer.py", line 3791, in training_step',
    "    self.accelerator.backward(loss, **kwargs)",
    f'  File "{SITE}torch/autograd/graph.py", line 825, in _engine_run_backward',
    "    return Variable._execution_engine.run_backward(",
]


def torch_26(gpu: int = 2) -> str:
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU {gpu} has a total capacity of 23.65 GiB of which "
        "1.02 GiB is free. Process 4121 has 22.62 GiB memory in use. Of the allocated memory 20.90 GiB is allocated by PyTorch, "
        "and 1.31 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  "
        "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
    )


MESSAGES = {
    "torch 2.6": torch_26(),
    "torch 2.1, with its own process": (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 612.00 MiB. GPU 0 has a total capacty of 39.39 GiB of which "
        "411.50 MiB is free. Including non-PyTorch memory, this process has 38.98 GiB memory in use. Of the allocated memory 36.02 GiB is "
        "allocated by PyTorch, and 2.11 GiB is reserved by PyTorch but unallocated."
    ),
    "torch 1.13": (
        "RuntimeError: CUDA out of memory. Tried to allocate 98.00 MiB (GPU 3; 15.90 GiB total capacity; 14.62 GiB already allocated; "
        "53.75 MiB free; 14.98 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting "
        "max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
    ),
    "torch on an NPU": (
        "RuntimeError: NPU out of memory. Tried to allocate 386.00 MiB (NPU 5; 60.97 GiB total capacity; 58.63 GiB already allocated; "
        "58.63 GiB current active; 171.34 MiB free; 59.64 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try "
        "setting max_split_size_mb to avoid fragmentation."
    ),
    "torch on ROCm": (
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.16 GiB. GPU 1 has a total capacity of 63.98 GiB of which "
        "712.00 MiB is free. Of the allocated memory 60.11 GiB is allocated by PyTorch, and 2.40 GiB is reserved by PyTorch but unallocated."  # noqa: E501
    ),
}
FIGURES = ("family", "gpu", "requested", "capacity", "free", "process_in_use", "allocated", "reserved_unallocated", "reserved_total")

Wrap = Callable[[list[str]], list[str]]


def before(prefix: str) -> Wrap:
    return lambda lines: [prefix + line for line in lines]


def each(made: Callable[[str], str]) -> Wrap:
    return lambda lines: [made(line) for line in lines]


def cri(lines: list[str]) -> list[str]:
    """containerd's form; what is long is cut into parts."""
    stamp = "2026-05-06T10:11:12.131415161Z stderr "
    out = []
    for line in lines:
        parts = [line[at : at + 90] for at in range(0, len(line), 90)] or [""]
        out += [f"{stamp}P {part}" for part in parts[:-1]] + [f"{stamp}F {parts[-1]}"]
    return out


def docker(lines: list[str]) -> list[str]:
    """docker's json-file; what is long is cut into records without a line end."""
    out = []
    for line in lines:
        parts = [line[at : at + 110] for at in range(0, len(line), 110)] or [""]
        texts = [*parts[:-1], parts[-1] + "\n"]
        out += [json.dumps({"log": text, "stream": "stderr", "time": "2026-05-06T10:11:12.131415161Z"}) for text in texts]
    return out


def as_json(key: str) -> Wrap:
    return each(lambda line: json.dumps({"level": "error", key: line, "pid": 4121}, ensure_ascii=False))


def asciinema(lines: list[str]) -> list[str]:
    text = "\r\n".join(lines) + "\r\n"
    return [f'[{at / 7:.6f}, "o", {json.dumps(text[at : at + 70])}]' for at in range(0, len(text), 70)]


def console(width: int) -> Wrap:
    """A console cuts at its width, in mid-word."""
    return lambda lines: [line[at : at + width] for line in lines for at in range(0, max(1, len(line)), width)]


def terminal(width: int, indent: str = "", pad: bool = False) -> Wrap:
    """rich and e-mail break lines at blanks."""

    def wrap(lines: list[str]) -> list[str]:
        out = []
        for line in lines:
            if not line.lstrip().startswith(("torch.", "RuntimeError")):
                out.append(line)
                continue
            found = textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
            out += [part.ljust(width) if pad else part for part in found]
        return out

    return wrap


def box(lines: list[str]) -> list[str]:
    """An exception group's."""
    return [
        "  + Exception Group Traceback (most recent call last):",
        *(f"  | {line}" for line in lines),
        "  +------------------------------------",
    ]


def one_line(end: str) -> Wrap:
    return lambda lines: [end.join(lines)]


LINE: dict[str, Wrap] = {
    "torch exception hook": before("[rank2]: "),
    "torchrun --tee": before("[default2]:"),
    "torchrun --tee with a role": before("[trainer2]:"),
    "torchrun's template": before("node-3:2: "),
    "mpirun": before("[1,2]<stderr>:"),
    "mpirun with the time": before("Wed May  6 10:11:12 2026[1,2]<stderr>:"),
    "prterun": before("[prterun-node-1@1,2]<stderr>: "),
    "SageMaker": before("[1,mpirank:2,algo-1]<stderr>:"),
    "Hydra": before("[2] "),
    "srun": before("2: "),
    "srun, padded": before(" 2: "),
    "pdsh": before("gpu-q-13: "),
    "pdsh, short": before("node3: "),
    "Ray": before("\x1b[36m(WorkerDict pid=9120, ip=10.0.0.7)\x1b[0m "),
    "Ray, repeated": each(lambda line: f"(WorkerDict pid=9120) {line} \x1b[32m [repeated 7x across cluster]\x1b[0m"),
    "raylet": before("(raylet) "),
    "vLLM": before("(EngineCore_DP0 pid=4121) ERROR 03-02 11:08:51 [core.py:842] "),
    "kubectl --prefix": before("[pod/trainer-0/pytorch] "),
    "a pod and its worker": before("[node-0|worker-3] "),
    "stern": before("\x1b[33mpytorchjob-llm-worker-2\x1b[0m \x1b[36mpytorch\x1b[0m "),
    "compose": before("trainer-1  | "),
    "compose, a name alone": before("trainer  | "),
    "ansible": before("gpu-node   | "),
    "honcho": before("12:01:02 web.1  | "),
    "Azure ML": before("[stderr]"),
    "Azure Container Apps": before("2026-05-06T10:11:12Z stderr: "),
    "glog": before("E0506 10:11:12.131415 12345 train.cc:12] "),
    "absl": before("E0506 10:11:12.131415 140213 main.py:12] "),
    "c10 of a rank": before("[rank2]:[E506 10:11:12.131415926 Module.cpp:175] "),
    "logging": before("2026-05-06 10:11:12,131 - ERROR - trainer - "),
    "logging's default": before("ERROR:root:"),
    "DeepSpeed": before("[2026-05-06 10:11:12,131] [ERROR] [engine.py:12:backward] "),
    "DeepSpeed of a rank": before("[2026-05-06 10:11:12,131] [ERROR] [utils.py:12:log] [Rank 2] "),
    "HF examples": before("05/06/2026 10:11:12 - ERROR - __main__ - "),
    "HF": before("[ERROR|trainer.py:2078] 2026-05-06 10:11:12,131 >> "),
    "LLaMA-Factory": before("[ERROR|2026-05-06 10:11:12] llamafactory.train.tuner:12 >> "),
    "swift": before("[ERROR:swift] "),
    "axolotl": before("[2026-05-06 10:11:12,131] [ERROR] [axolotl.train.train:12] [PID:4121] [RANK:2] "),
    "loguru": before("2026-05-06 10:11:12.131 | ERROR    | train:main:12 - "),
    "MMEngine": before("05/06 10:11:12 - mmengine - ERROR - "),
    "Spark": before("26/05/06 10:11:12 ERROR Executor: "),
    "GitHub Actions": before("2026-05-06T10:11:12.1314151Z "),
    "GitHub Actions, an error": before("2026-05-06T10:11:12.1314151Z ##[error]"),
    "GitLab": before("2026-05-06T10:11:12.131415Z 00E "),
    "Jenkins": before("[2026-05-06T10:11:12.131Z] "),
    "journald": before("May 06 10:11:12 gpu-q-13 trainer[4121]: "),
    "RFC 5424": before('<134>1 2026-05-06T10:11:12.131Z gpu-q-13 trainer 4121 ID47 [origin ip="10.0.0.3"] '),
    "CloudWatch": each(lambda line: '1778062272131,"' + line.replace('"', '""') + '"'),
    "grep -n": lambda lines: [f"{number}:{line}" for number, line in enumerate(lines, 117)],
    "grep with a file": lambda lines: [f"logs/train.log:{number}:{line}" for number, line in enumerate(lines, 117)],
    "grep's context": lambda lines: [f"{number}{':' if 'out of memory' in line else '-'}{line}" for number, line in enumerate(lines, 117)],
    "a viewer": lambda lines: [f"{number:5} | {line}" for number, line in enumerate(lines, 117)],
    "a viewer with colons": lambda lines: [f"{number:5}: {line}" for number, line in enumerate(lines, 117)],
    "a patch": before("+"),
    "a quotation": before("> "),
    "a quotation in one": before("> > "),
    "a quotation, escaped": before("&gt; "),
    "a fence": lambda lines: ["```python", *lines, "```"],
    "indented": before("    "),
    "kubernetes": cri,
    "docker": docker,
    "asciinema": asciinema,
    **{f"JSON: {key}": as_json(key) for key in ("log", "message", "msg", "event", "text", "textPayload")},
    "JSON of GCP": each(lambda line: json.dumps({"severity": "ERROR", "jsonPayload": {"message": line}})),
    "JSON of ECS": each(lambda line: json.dumps({"@timestamp": "2026-05-06T10:11:12Z", "fields": {"message": line}})),
    "colours": each(lambda line: f"\x1b[1;31m{line}\x1b[0m"),
    "colours, escaped": each(lambda line: f"\\u001b[36m{line}\\u001b[0m"),
    "colours, without ESC": each(lambda line: f"[36m{line}[0m"),
    "colours of SageMaker": each(lambda line: f"#033[36m{line}#033[0m"),
    "carriage returns": each(lambda line: f"{line}\r"),
    "two carriage returns": each(lambda line: f"{line}\r\r"),
    "HTML": each(lambda line: line.replace("&", "&amp;").replace(">", "&gt;").replace("<", "&lt;").replace('"', "&quot;")),
    "Markdown": each(lambda line: line.replace("_", "\\_").replace("*", "\\*")),
    "smart quotes": each(lambda line: line.replace('"', "\u201c")),
    "non-breaking blanks": each(lambda line: line.replace(" ", "\u00a0")),
    "narrow blanks behind numbers": each(lambda line: line.replace(" GiB", "\u202fGiB").replace(" MiB", "\u202fMiB")),
    "zero-width characters": each(lambda line: line.replace(". ", ".\u200b ").replace(" GiB", "\u200b GiB")),
    "full-width punctuation": each(
        lambda line: line.replace(": ", "\uff1a").replace(";", "\uff1b").replace("(GPU", "\uff08GPU").replace(". ", "\u3002")
    ),
    "full-width figures": each(lambda line: line.translate({code: code + 0xFEE0 for code in range(0x30, 0x3A)})),
    "tqdm": lambda lines: [
        "  3%|3         | 11/400 [00:29<16:20,  2.5s/it]\r  3%|3         | 12/400 [00:31<16:20,  2.5s/it]" + lines[0],
        *lines[1:],
    ],
    "an exception group": box,
    "wrapped at 72": terminal(72),
    "wrapped at 80": terminal(80, pad=True),
    "wrapped at 100, indented": terminal(100, "    "),
    "wrapped at 120": terminal(120),
    "quoted and wrapped": lambda lines: [f"> {line}" for line in terminal(76)(lines)],
    "a console of 80": console(80),
    "a console of 100": console(100),
    "a console of 120": console(120),
    "one line, escaped": one_line("\\n"),
    "one line, escaped twice": one_line("\\\\n"),
    "one line, a slash lost its way": one_line("/n"),
    "one line, blanks": lambda lines: [" ".join(line.strip() for line in lines)],
    "a CSV with decimal commas": each(lambda line: line.replace(".32 GiB", ",32 GiB").replace(".65 GiB", ",65 GiB")),
}


def read(text: str | bytes) -> list[Event]:
    reading = log_reader.read_logs([log_scan.scan(Source.text(text, "error.log"))])
    return [event for event in reading.events if event.consequence_of is None]


def figures(event: Event) -> dict[str, str]:
    return {name: str(getattr(event, name)) for name in FIGURES}


def expected(message: str) -> dict[str, str]:
    return figures(read(message)[0])


def head_line(lines: list[str], device: str) -> int:
    """The number of the line in which the message begins, though it is torn there."""
    squeezed, owners = "", []
    for number, line in enumerate(lines, 1):
        inner = line
        if line.startswith("{"):
            data = json.loads(line)
            inner = next(
                str(data[key]) for key in ("log", "message", "msg", "event", "text", "textPayload", "jsonPayload", "fields") if key in data
            )
        elif line.startswith("[") and '"o"' in line:
            inner = json.loads(line)[2]
        elif " stderr P " in line or " stderr F " in line:
            inner = line.split(" P ", 1)[-1] if " P " in line else line.split(" F ", 1)[-1]
        small = "".join(inner.replace("\u200b", "").split()).replace("\u00a0", "")
        squeezed += small
        owners += [number] * len(small)
    return owners[squeezed.index(f"{device}outofmemory")]


@for_each("kind", MESSAGES)
@for_each("name", LINE)
def test_noise_leaves_the_figures(name: str, kind: str) -> None:
    """Every wrapper by itself: same figures, same card, same family, frames where the wrapper keeps lines, true place."""
    message = MESSAGES[kind]
    lines = LINE[name]([*FRAMES, message])
    events = read("\n".join(["step 1", *lines, "bye", ""]))
    assert [figures(event) for event in events] == [expected(message)]
    assert events[0].exception == message.partition(":")[0]
    assert events[0].evidence[0].line == 1 + head_line(lines, message.split(" out of")[0][-3:].replace("UDA", "CUDA")[-4:].strip())
    assert [frame.function for frame in events[0].frames] == ["training_step", "_engine_run_backward"]
    assert events[0].phase == "backward"


#: Wrappers that people stack: what is written first stands innermost.
STACKS = [
    ("torch exception hook", "kubernetes"),
    ("torch exception hook", "docker"),
    ("torch exception hook", "srun"),
    ("torch exception hook", "wrapped at 80"),
    ("torch exception hook", "a console of 80"),
    ("Ray", "GitHub Actions"),
    ("vLLM", "Ray"),
    ("DeepSpeed", "pdsh"),
    ("mpirun", "GitLab"),
    ("loguru", "compose"),
    ("journald", "a quotation"),
    ("wrapped at 80", "a quotation"),
    ("wrapped at 80", "HTML"),
    ("colours", "JSON: log"),
    ("HTML", "a quotation, escaped"),
    ("JSON: message", "kubectl --prefix"),
    ("full-width punctuation", "a quotation"),
    ("non-breaking blanks", "wrapped at 72"),
    ("a console of 120", "two carriage returns"),
    ("torch exception hook", "one line, escaped"),
]


@for_each("kind", ["torch 2.6", "torch 1.13"])
@for_each("names", STACKS)
def test_noise_in_noise(names: tuple[str, str], kind: str) -> None:
    lines = [*FRAMES, MESSAGES[kind]]
    for name in names:
        lines = LINE[name](lines)
    events = read("\n".join(["step 1", *lines, "bye", ""]))
    assert [figures(event) for event in events] == [expected(MESSAGES[kind])]
    assert [frame.function for frame in events[0].frames] == ["training_step", "_engine_run_backward"]


#: What only puts something before each line, or round it: any two of these make one.
PREFIXES = sorted(
    name
    for name in LINE
    if len(LINE[name](["x", "y"])) == 2
    and not name.startswith(
        (
            "one line",
            "a viewer",
            "grep",
            "JSON",
            "Cloud",
            "tqdm",
            "kubernetes",
            "docker",
            "asciinema",
            "a console",
            "wrapped",
            "quoted and",
            "non-breaking",
            "zero",
        )
    )
)


@settings(max_examples=examples(150), deadline=None)
@given(
    st.sampled_from(PREFIXES),
    st.sampled_from(PREFIXES),
    st.sampled_from(sorted(MESSAGES)),
    st.sampled_from([None, "JSON: log"]),
)
def test_any_two_prefixes(inner: str, outer: str, kind: str, container: str | None) -> None:
    lines = LINE[outer](LINE[inner]([*FRAMES, MESSAGES[kind]]))
    lines = LINE[container](lines) if container else lines
    events = read("\n".join(["step 1", *lines, "bye", ""]))
    assert [figures(event) for event in events] == [expected(MESSAGES[kind])]


@settings(max_examples=examples(120), deadline=None)
@given(st.sampled_from(sorted(MESSAGES)), st.integers(34, 160), st.sampled_from(["", "[rank2]: ", "> "]), st.booleans())
def test_any_width(kind: str, width: int, prefix: str, blanks: bool) -> None:
    """A console of any width, which cuts in mid-word or mid-number, or a terminal that breaks at blanks."""
    message = MESSAGES[kind]
    lines = (terminal if blanks else console)(width)([prefix + line for line in [*FRAMES, message]])
    events = read("\n".join(["step 1", *lines, "bye", ""]))
    assert [figures(event) for event in events] == [expected(message)]


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=600), st.binary(max_size=600), st.sampled_from(sorted(MESSAGES)))
def test_arbitrary_bytes_round_a_message_never_raise(before_it: bytes, behind: bytes, kind: str) -> None:
    read(before_it + MESSAGES[kind].encode() + behind)
    read(MESSAGES[kind].encode()[: len(before_it)] + before_it + b"Tried to allocate" + behind)


@for_each(
    "unit",
    [
        b'{"',
        b"[1, ",
        b'\\"',
        b"> ",
        b"[0m",
        b"&amp;",
        b"\r",
        b'"a": "',
        b"9 | ",
        b"| ",
        b"a.b:",
        b"\\n  File ",
        b"OutOf",
        "\u3000".encode(),
    ],
)
def test_a_line_of_a_mebibyte_takes_bounded_time(unit: bytes) -> None:
    """Whatever a line of 1 MiB repeats, with messages in it and behind it."""
    raw = unit * ((1 << 20) // len(unit))
    with within(5):
        read(raw[: 1 << 19] + MESSAGES["torch 2.6"].encode() + raw[1 << 19 :] + b"\n" + MESSAGES["torch 1.13"].encode())
