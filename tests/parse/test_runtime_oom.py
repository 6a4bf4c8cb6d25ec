"""Runtimes, drivers and libraries on a device: each wording gives its family and exactly the figures that it prints."""

from __future__ import annotations

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep import examples
from wordings import Wording, check, figures, only, reading

from diagnose.parse.messages import runtime_oom

CUDA = "cuda_driver"
WORDINGS = [
    Wording("before 1.0", "RuntimeError: cuda runtime error (2) : out of memory at /opt/conda/THC/generic/THCStorage.cu:58", CUDA),
    Wording("THC", "THCudaCheck FAIL file=/opt/THC/generic/THCStorage.cu line=58 error=2 : out of memory", CUDA),
    Wording(
        "asynchronous",
        "torch.AcceleratorError: CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' in https://example.org/x for more "
        "information.\nCUDA kernel errors might be asynchronously reported at some other API call",
        CUDA,
    ),
    Wording("driver", "RuntimeError: CUDA driver error: out of memory", CUDA),
    Wording("numba", "numba.cuda.cudadrv.driver.CudaAPIError: [2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY", CUDA),
    Wording("cupy runtime", "cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorMemoryAllocation: out of memory", CUDA),
    Wording("bitsandbytes", "Error out of memory at line 380 in file /src/csrc/pythonInterface.cpp", CUDA),
    Wording("flash-attn", "CUDA error (/build/csrc/flash_attn/src/flash_fwd_launch_template.h:89): out of memory", CUDA),
    Wording("onnx", "onnxruntime.capi.Fail: CUDA failure 2: out of memory ; GPU=0 ; hostname=worker", CUDA),
    Wording(
        "pinned by TensorFlow",
        "E cuda_driver.cc:963] failed to alloc {requested:bytes} bytes on host: CUDA_ERROR_OUT_OF_MEMORY",
        "pinned_host",
    ),
    Wording(
        "pinned by Faiss",
        "failed: failed to cudaHostAlloc {requested:bytes} bytes for CPU <-> GPU async copy buffer (error 2 out of memory)",
        "pinned_host",
    ),
    Wording("pinned by a server", "FATAL | cudaMallocHost failed: cudaErrorMemoryAllocation: out of memory", "pinned_host"),
    Wording("pinned on hip", "hipHostMalloc(ptr, size, 0) failed: out of memory", "pinned_host"),
    Wording(
        "pinned by RMM",
        "std::bad_alloc: CUDA error at: /opt/rmm/mr/host/pinned_memory_resource.hpp:75: cudaErrorMemoryAllocation out of memory",
        "pinned_host",
    ),
    Wording("pinned by Blender", "CUDA error: Out of memory in cuMemHostAlloc(&shared, size, 2) (device_impl.cpp:800)", "pinned_host"),
    Wording("hip", "RuntimeError: HIP error: out of memory", "torch_hip"),
    Wording("hip enum", "RuntimeError: hipErrorOutOfMemory: allocation refused", "torch_hip"),
    Wording("amdgpu", "[  812.123456] amdgpu 0000:03:00.0: amdgpu: Not enough memory for command submission!", "torch_hip"),
    Wording("xpu", "RuntimeError: Native API failed. Native API returns: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)", "torch_xpu"),
    Wording("older xpu", "RuntimeError: Native API failed. Native API returns: -5 (PI_ERROR_OUT_OF_RESOURCES)", "torch_xpu"),
    Wording(
        "ascend",
        "EL0004: [PID: 31877] 2026-05-11-10:21:07.123.456 Memory_Allocation_Failure(EL0004): Failed to allocate memory.\n"
        "        Possible Cause: Available memory is insufficient.\n"
        "        alloc device memory failed, runtime result = 207001[FUNC:ReportCallError][FILE:log_inner.cpp][LINE:162]",
        "torch_npu",
    ),
    Wording("ascend driver", "rtMalloc execute failed, reason=[driver error:out of memory][FUNC:FuncErrorReason]", "torch_npu"),
    Wording(
        "metal",
        "[METAL] Command buffer execution failed: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)",
        "torch_mps",
    ),
    Wording("metal buffer", "RuntimeError: Invalid buffer size: {requested:size}", "torch_mps"),
    Wording(
        "nvml",
        "RuntimeError: NVML_SUCCESS == DriverAPI::get()->nvmlInit_v2_() INTERNAL ASSERT FAILED at "
        '"../c10/cuda/CUDACachingAllocator.cpp":838, please report a bug to PyTorch.',
        "torch_cuda",
    ),
    Wording("cublas", "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "cublas"),
    Wording(
        "cublas handle",
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
        "cublas",
        "suspected",
        "library_status",
    ),
    Wording("hipblas", "RuntimeError: CUDA error: HIPBLAS_STATUS_ALLOC_FAILED when calling `hipblasCreate(handle)`", "cublas"),
    Wording("cudnn", "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "cudnn"),
    Wording("cudnn 9", "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", "cudnn"),
    Wording("cudnn maybe", "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR", "cudnn", "suspected", "library_status"),
    Wording(
        "cudnn input",
        "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if you passed in a non-contiguous input.",
        "cudnn",
        "suspected",
        "library_status",
    ),
    Wording("no engine", "RuntimeError: GET was unable to find an engine to execute this computation", "cudnn", "suspected", "no_engine"),
    Wording("no algorithm", "RuntimeError: Unable to find a valid cuDNN algorithm to run convolution", "cudnn", "suspected", "no_engine"),
    Wording("cusolver", "RuntimeError: cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnCreate(handle)`", "cusolver"),
    Wording(
        "cusolver maybe",
        "RuntimeError: cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR, when calling `cusolverDnCreate(handle)`",
        "cusolver",
        "suspected",
        "library_status",
    ),
    Wording("cufft", "RuntimeError: cuFFT error: CUFFT_ALLOC_FAILED", "other"),
    Wording("cusparse", "RuntimeError: CUDA error: CUSPARSE_STATUS_ALLOC_FAILED when calling `cusparseCreate(handle)`", "other"),
    Wording("nccl", "node7:41233:41877 [5] include/alloc.h:212 NCCL WARN Cuda failure 2 'out of memory'", "nccl"),
    Wording("nccl of 2.28", "node7:41233:41877 [5] NCCL WARN Cuda failure 'out of memory'", "nccl"),
    Wording(
        "nccl request", "node7:41233:41877 [5] include/alloc.h:220 NCCL WARN Failed to CUDA calloc async {requested:bytes} bytes", "nccl"
    ),
    Wording(
        "cupy",
        "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating {requested:commas} bytes (allocated so far: {allocated:commas} bytes, "
        "limit set to: {allowed:commas} bytes).",
        "cupy",
    ),
    Wording(
        "old cupy",
        "cupy.cuda.memory.OutOfMemoryError: out of memory to allocate; Out of memory allocating {requested:commas} bytes.",
        "cupy",
    ),
    Wording(
        "rmm",
        "MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /opt/rmm/x.hpp:66: cudaErrorMemoryAllocation out of memory",
        "other",
    ),
    Wording(
        "paddle",
        "Out of memory error on GPU 1. Cannot allocate {requested:paddle} memory on GPU 1, {allocated:paddle} memory has "
        "been allocated and "
        "available memory is only {free:paddle}.",
        "paddle",
        gpu=1,
    ),
    Wording(
        "mindspore",
        "RuntimeError: Memory not enough: current free memory size[{free:bytes}] is smaller than required size[{requested:bytes}].",
        "mindspore",
    ),
    Wording("mindspore malloc", "RuntimeError: Malloc device memory failed, size[{requested:bytes}], ret[207001], Device", "mindspore"),
    Wording("onnx arena", "onnxruntime::BFCArena Failed to allocate memory for requested buffer of size {requested:bytes}", "other"),
    Wording(
        "tensorrt",
        "[TRT] [E] 1: [defaultAllocator.cpp::allocate::20] Error Code 1: Cuda Runtime (out of memory)\n"
        "[TRT] [W] Requested amount of GPU memory ({requested:bytes} bytes) could not be allocated. There may not be enough free memory.",
        "tensorrt",
    ),
    Wording("habana", "RuntimeError: FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::{requested:bytes} (40.9)MB", "other"),
]


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda wording: wording.name)
@settings(max_examples=examples(12), deadline=None)
@given(data=st.data())
def test_what_is_printed_is_read_back(wording: Wording, data: st.DataObject) -> None:
    """One event of the right family; every printed figure inside its interval, nothing that was not printed."""
    check(wording, data.draw(figures(wording)))


@for_each(
    "line",
    [
        '        if "CUDA error: out of memory" in str(e):',
        '    raise RuntimeError("CUDA error: out of memory")',
        "    if 'RESOURCE_EXHAUSTED: Out of memory' in str(error):",
        '    print(f"no luck: CUDA error: an illegal memory access was encountered")',
        "W tensorflow/core/framework/cpu_allocator_impl.cc:80] Allocation of 4915200000 exceeds 10% of free system memory.",
        "[W1102 CUDACachingAllocator.cpp:90] nvmlInit_v2 failed; omitting per-process memory info",
        "[TRT] [W] Some tactics do not have sufficient memory to run.",
        "    except RuntimeError as e:  # not 'CUBLAS_STATUS_ALLOC_FAILED' in str(e)",
        "WARNING torch.backends.cudnn: CUDNN_STATUS_NOT_SUPPORTED is ignored",
        "[W Module.cpp:156] symbolizing C++ stack trace",
    ],
)
def test_what_only_quotes_or_warns_is_none(line: str) -> None:
    """A source line in a traceback quotes the words of an error; warnings of what may cost time are no failure."""
    assert reading(f"{line}\n").events == ()


def test_the_nccl_lines_of_one_failure_are_one_event() -> None:
    """NCCL warns twice, torch raises, and quotes NCCL once more."""
    event = only(
        reading(
            "n:1:2 [5] include/alloc.h:212 NCCL WARN Cuda failure 2 'out of memory'\n"
            "n:1:2 [5] include/alloc.h:220 NCCL WARN Failed to CUDA calloc async 4194304 bytes\n"
            "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, unhandled cuda error, NCCL version 2.21.5\n"
            "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 2 'out of memory'\n"
        )
    )
    assert (event.family, str(event.requested)) == ("nccl", "4194304 bytes")


def test_what_ascend_prints_after_its_message_is_the_same_failure() -> None:
    """The inner error of CANN follows without figures."""
    event = only(
        reading(
            "RuntimeError: NPU out of memory. Tried to allocate 386.00 MiB (NPU 3; 60.97 GiB total capacity; 56.20 GiB already allocated; "
            "56.20 GiB current active; 1.88 GiB free; 57.02 GiB reserved in total by PyTorch)\n"
            "[ERROR] 2026-05-11-10:21:07 (PID:31877, Device:3, RankID:3) ERR00006 PTA memory error\n"
            "EL0004: [PID: 31877] Memory_Allocation_Failure(EL0004): Failed to allocate memory.\n"
        )
    )
    assert (event.family, event.gpu, str(event.requested)) == ("torch_npu", 3, "386.00 MiB")


@settings(max_examples=examples(150), deadline=None)
@given(st.text(max_size=300), st.sampled_from(WORDINGS), st.integers(0, 400))
def test_no_text_makes_the_reader_fail(text: str, wording: Wording, cut: int) -> None:
    """A cut message among any characters is read or left, never raises."""
    runtime_oom.read(wording.printed(dict.fromkeys([name for name, _ in wording.slots], 1 << 30))[:cut] + text)


def test_figures_of_cupy_are_shown_as_printed() -> None:
    """A reader looks for them in the log."""
    text = "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so far: 16,106,127,360 bytes).\n"
    event = only(reading(text))
    assert (str(event.requested), str(event.allocated)) == ("8,589,934,592 bytes", "16,106,127,360 bytes")
    assert event.requested is not None and event.requested.bytes == 8 << 30
