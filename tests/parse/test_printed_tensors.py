"""Shapes that a log prints beside a failed request, and the one line of source above a message."""

from __future__ import annotations

from collected import for_each
from hypothesis import given
from hypothesis import strategies as st

from diagnose.parse import log_reader
from diagnose.parse.messages.printed_tensors import element_width
from diagnose.parse.model.event import Event, PrintedTensor
from diagnose.scan import log_scan
from diagnose.scan.source import Source

OOM = "OOM when allocating tensor with shape[{shape}] and type {kind} on /job:localhost/device:GPU:0 by allocator GPU_0_bfc"
TF = "ResourceExhaustedError: " + OOM
NODE = "\n         [[{{node decoder/attn/Softmax}}]]"
XLA = """XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 50331648 bytes.
BufferAssignment OOM Debugging.
Peak buffers:
        Buffer 1:
                Size: 48.00MiB
                Operator: op_name="jit(step)/layer_3/add" source_file="/app/model.py" source_line=12
                XLA Label: fusion
                Shape: bf16[4096,6144]
                ==========================
        Buffer 2:
                Size: 1.00MiB
                Shape: f32[512,512]
"""
TORCH = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 192.00 MiB. GPU 0 has 23.52 GiB."
COMPILED = (
    '  File "/tmp/torchinductor_a/de/cde6.py", line 51, in call\n'
    f"    buf9 = empty_strided_cuda((24576, 4096), (4096, 1), torch.bfloat16)\n{TORCH}"
)
KERNEL = "W op_kernel.cc:1763] OP_REQUIRES failed at random_op.cc:76 : Resource exhausted: " + OOM
NUMPY = "MemoryError: Unable to allocate 7.45 GiB for an array with shape (1000, 1000, 1000) and data type float64"


def only(text: str) -> Event:
    events = log_reader.read_logs([log_scan.scan(Source.text(text, "job.log"))]).events
    assert len(events) == 1, events
    return events[0]


@for_each(
    "text, printed",
    [
        (TF.format(shape="64,1024,1024", kind="float") + NODE, PrintedTensor((64, 1024, 1024), 4, "decoder/attn/Softmax")),
        (TF.format(shape="64,1024,1024", kind="float"), PrintedTensor((64, 1024, 1024), 4, "")),
        (
            TF.format(shape="5,64,1024,1024", kind="float") + "\n[[node sequential/conv2d/Relu\n (defined at /x/backend.py:4867)\n]]",
            PrintedTensor((5, 64, 1024, 1024), 4, "sequential/conv2d/Relu"),
        ),
        (
            "Node: 'unet/block/cross_attention/Softmax'\n" + TF.format(shape="1,8,4096,4096", kind="float"),
            PrintedTensor((1, 8, 4096, 4096), 4, "unet/block/cross_attention/Softmax"),
        ),
        (
            "Detected at node gradient_tape/stem/Conv2DBackpropInput defined at (most recent call last):\n<stack traces unavailable>\n"
            + TF.format(shape="8,64,512,512", kind="float"),
            PrintedTensor((8, 64, 512, 512), 4, "gradient_tape/stem/Conv2DBackpropInput"),
        ),
        # a title repeats the shape alone, and it stands first
        (
            f"OOM all the time, shape[64,1024,1024]\n\n{'words ' * 300}\n" + TF.format(shape="64,1024,1024", kind="float") + NODE,
            PrintedTensor((64, 1024, 1024), 4, "decoder/attn/Softmax"),
        ),
        (KERNEL.format(shape="3072,3072", kind="half"), PrintedTensor((3072, 3072), 2, "random_op")),
        (XLA, PrintedTensor((4096, 6144), 2, "jit(step)/layer_3/add")),
        (NUMPY, PrintedTensor((1000, 1000, 1000), 8, "")),
        (COMPILED, PrintedTensor((24576, 4096), 2, "empty_strided")),
        (f"{TORCH}\n\nThe input is torch.Size([24576, 2048]).\n", PrintedTensor((24576, 2048), 0, "")),
    ],
)
def test_the_shape_that_has_the_size_of_the_request(text: str, printed: PrintedTensor) -> None:
    assert only(text).printed == (printed,)


def test_a_shape_of_another_size_is_not_what_was_requested() -> None:
    assert only(f"{TORCH}\n\nThe input is torch.Size([8, 512]).\n").printed == ()


@for_each(
    "text, line",
    [
        (f"    x = torch.cat([a, b], dim=1)\n{TORCH}", "x = torch.cat([a, b], dim=1)"),
        (f"    y = attend(q, k)\n        ~~~~~~^^^^^^\n{TORCH}", "y = attend(q, k)"),
        ("    z = z.softmax(-1)\n\ntorch.OutOfMemoryError:\n" + TORCH.partition(": ")[2], "z = z.softmax(-1)"),
        (f"It fails when I start it.\n{TORCH}", ""),
        (f"Epoch 3 of 10\n{TORCH}", ""),
    ],
)
def test_the_one_line_of_source_above_a_message(text: str, line: str) -> None:
    assert only(text).source_line == line


@for_each(
    "name, width", [("bf16", 2), ("f32", 4), ("float64", 8), ("uint8", 1), ("int64", 8), ("bool", 1), ("half", 2), ("resource", 0), ("", 0)]
)
def test_the_bytes_of_an_element(name: str, width: int) -> None:
    assert element_width(name) == width


@given(st.lists(st.integers(0, 10**6), max_size=6), st.sampled_from(["float", "half", "double", "int32", "nothing"]))
def test_no_shape_breaks_the_reader(shape: list[int], kind: str) -> None:
    """Whatever is printed, its elements times their width are what was requested."""
    event = only(TF.format(shape=",".join(map(str, shape)), kind=kind))
    assert all(event.requested is not None and each.elements * (each.width or 1) <= event.requested.high for each in event.printed)
