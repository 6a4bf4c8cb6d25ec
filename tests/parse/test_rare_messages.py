"""Messages of programs that few logs hold, each with its family; the same words in a question of code say nothing."""

from __future__ import annotations

from collected import for_each

import diagnose

MESSAGES = {
    "[HAMI-core ERROR (pid:7 thread=140360328144640 allocator.c:115)]: cuMemoryAllocate failed res=2": "cuda_driver",
    "ERROR: ../rtSafe/safeRuntime.cpp (25) - Cuda Error in allocate: 2 (out of memory)": "cuda_driver",
    "permutohedral/DeviceMemoryAllocator.h:68] GPU memory allocation failed (might be due to insufficient memory)": "other",
    "RuntimeError: Insufficient VRAM in split for model and cache": "other",
    "DmlExecutionProvider: Exception(1) tid(4790) 8007000E Not enough memory resources are available to complete this operation.": "other",
    "OpenCL error: clEnqueueNDRangeKernel: -4": "other",
    "CUDA memory allocation error detected:": "other",
    "MIOpen Error: /MIOpen/src/ocl/handleocl.cpp:204: Memory not available to allocate buffer: 4362076160": "torch_hip",
    "RMM failure at:/opt/rmm/mr/device/pool_memory_resource.hpp:201: Maximum pool size exceeded": "other",
    "[TRT] [W] Requested amount of GPU memory (6442450944 bytes) could not be allocated.": "tensorrt",
    "catboost/cuda/cuda_lib/cuda_base.h:275: CUDA error 2: out of memory": "cuda_driver",
    "catboost/cuda/cuda_lib/memory_pool/stack_like_memory_pool.h:300: Out of memory. Requested 3072.5; Free 911.25": "other",
    "ERROR  TDRV:log_dev_mem   Failed to allocate 256.000MB (usage: tensors) on ND 0:NC 1, current utilization:": "other",
    "ERROR  NMGR:stage  nrt_tensor_allocate status=4 NRT_RESOURCE Allocation Failure": "other",
    "thread 'main' panicked at 'wgpu error: Out of Memory'": "other",
    "RuntimeError: Insufficient VRAM for model and cache": "other",
    "RuntimeError: Insufficient space in device allocation": "other",
    "DGLError: Check failed: (e == cudaSuccess) is false: CUDA: out of memory": "cuda_driver",
    "ValueError: Insufficient GPU memory error: The available single GPU memory is 5120.0 MB, which is less than the sum": "other",
    "whisper_model_load: failed to allocate memory for the model": "other",
    "whisper_init_state: failed to allocate the compute buffer": "other",
    "[ERROR] ggml_extend.hpp:990  - unet: failed to allocate the compute buffer": "other",
    "pandas.errors.ParserError: Error tokenizing data. C error: out of memory": "cpp_bad_alloc",
    "CUDA error: Out of memory in cuMemAlloc_v2(&device_pointer, size) (device_impl.cpp:701)": "cuda_driver",
    "System is out of GPU memory": "cuda_driver",
    "Error: System is out of GPU and shared host memory": "cuda_driver",
    "MemoryError: std::bad_alloc: CUDA error at: ../rmm/device/cuda.hpp:68: cudaErrorMemoryAllocation out of memory": "other",
    "EnforceNotMet: Cannot malloc 7604.85 MB GPU memory. Please shrink FLAGS_fraction_of_gpu_memory_to_use": "paddle",
    "RuntimeError: Malloc for kernel output failed, Memory isn't enough, node:Default/Cast-op446": "mindspore",
    "[minddata/dataset/util/arena.cc:250] Init] cudaHostAlloc failed, ret[2], out of memory": "pinned_host",
    "amrex::Abort::0::CUDA error 2 in file ../amrex/Src/Base/AMReX_Arena.cpp line 169: out of memory !!!": "cuda_driver",
    'OSError: [WinError 1455] 页面文件太小，无法完成操作。 Error loading "cudnn_cnn_infer64_8.dll"': "python_memory",
    "/tiny-cuda-nn/gpu_memory.h:120 cudaMalloc(&rawptr, n_bytes+GUARD*2) failed with error out of memory": "cuda_driver",
    "Allocation of the buffer failed with: CUDA error #2 (cudaErrorMemoryAllocation): out of memory.": "cuda_driver",
    'Kokkos ERROR: Cuda memory space failed to allocate 12 GiB (label="x") using cudaMalloc().': "other",
    "RuntimeError: Not enough memory, use lower resolution (max approx. 1152x1152). Need: 7.4GB free, Have:5.1GB free": "torch_cuda",
    "RuntimeError: Device(id:0) memory isn't enough and alloc failed, kernel name: Default/Conv2D, alloc size: 536870912B.": "mindspore",
    "vkAllocateMemory failed -2": "other",
    "Runtime error: Memory limit exceeded (16Gi)": "host_oom_killer",
    "heroku[worker.1]: Error R15 (Memory quota vastly exceeded)": "host_oom_killer",
    "[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync: out of memory": "cuda_driver",
    "fatal: Out of memory, malloc failed (tried to allocate 262144000 bytes)": "cpp_bad_alloc",
    "terminate called after throwing an instance of 'c10::OutOfMemoryError'": "torch_cuda",
    'RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":830': "torch_cuda",
    "PhysX error: PxgCudaDeviceMemoryAllocator fail to allocate memory 268435456 bytes!! Result = 2": "other",
    "cupy.cuda.memory.OutOfMemoryError: out of memory to allocate 536870912 bytes (total 9663676416 bytes)": "cupy",
    "Error using gpuArray/conv\nOut of memory on device. To view more detail about available memory on the GPU": "other",
    "Error: cannot allocate vector of size 12.5 Gb": "cpp_bad_alloc",
    "Memory limit of 512 MiB exceeded with 540 MiB used.": "host_oom_killer",
    "OutOfMemoryError: Container killed due to memory usage": "host_oom_killer",
    "Model loading was stopped due to insufficient system resources.": "other",
    "[E] Out of CUDA pre-allocated memory. Consider using ti.init(device_memory_fraction=0.9)": "other",
    "Warp CUDA error 2: out of memory (in function alloc_device, warp.cu:1100)": "cuda_driver",
    "libc++abi: terminating, std::runtime_error: [METAL] Command buffer execution failed: Insufficient Memory": "torch_mps",
    'MetalExecutionError: Error Domain=MTLCommandBufferErrorDomain Code=8 "Insufficient Memory (IOAF code 8)"': "torch_mps",
    "an instance of 'boost::wrapexcept<boost::compute::opencl_error>'\n  what():  Memory Object Allocation Failure": "other",
    "[2022-03-05.20:57:39] [Error] CL_MEM_OBJECT_ALLOCATION_FAILURE": "other",
    "W: ocl_pfn_notify error: CL_MEM_OBJECT_ALLOCATION_FAILURE error executing CL_COMMAND_WRITE_BUFFER on a GeForce": "other",
    "clBuildProgram error: CL_OUT_OF_HOST_MEMORY": "cpu_allocator",
    "07:12:40 | Ran out of memory, skipping batch. if this happens frequently, decrease batchsize": "torch_cuda",
    "| WARNING: ran out of memory in validation, retrying batch": "torch_cuda",
    "cudaCreateTextureObject( & a , NULL ) error( cudaErrorMemoryAllocation): out of memory Kokkos_CudaSpace.cpp:290": "cuda_driver",
    'Allocation using MemorySpace named "Cuda" failed with the following error:  Allocation of size 1.279 G failed': "other",
    "ERROR: RMM call failed with result RMM_ERROR_OUT_OF_MEMORY (4)  Attempted to allocate: 4000000000 bytes.": "other",
    "     Shape: f32[8,2048,11008]{2,1,0:T(8,128)}\n     Allocation type: HLO temp\n     ==========================": "jax",
    "MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /opt/rmm/mr/device/cuda_memory_resource.hpp": "other",
}
#: A number at the end of a text may lack digits: the message counts, its figure does not.
CUT = ("RuntimeError: Failed to allocate memory for requested buffer of size 10737", "ggml: failed to allocate CUDA0 buffer of size 89128")


@for_each("message, family", MESSAGES.items())
def test_a_rare_message_is_read(message: str, family: str) -> None:
    diagnosis = diagnose.explain(f"{message}\n")
    assert (diagnosis.verdict.status, diagnosis.verdict.family) == ("oom", family)
    assert diagnosis.outcome.remedies  # there is always a next step


@for_each("message", CUT)
def test_a_message_cut_in_its_figure_is_read_without_it(message: str) -> None:
    diagnosis = diagnose.explain(message)
    assert diagnosis.verdict.status == "oom"
    assert not [fact for fact in diagnosis.facts if fact.name == "log.requested" and fact.value is not None]


def test_an_exit_status_in_brackets_is_a_kill() -> None:
    assert diagnose.explain("Process `TRAIN (1)` terminated with an error exit status (137)\n").verdict.status == "suspected"


#: Words of these libraries that speak of something else than memory, and those that only may.
OTHERS = {
    "std::runtime_error: [METAL] Command buffer execution failed: Impacting Interactivity (0000000e)": "none",
    "#define CL_MEM_OBJECT_ALLOCATION_FAILURE -4": "none",
    'if (status == "CL_OUT_OF_RESOURCES") retry();': "none",
    "pyopencl._cl.RuntimeError: clFinish failed: OUT_OF_RESOURCES": "suspected",
    "Insufficient GPU memory error: The available single GPU memory is 19314.976 MB, which is less than the sum of model weight size"
    " (51.083 MB) and temporary buffer size (106.819 MB).": "lookalike",
}


@for_each("message, status", OTHERS.items())
def test_what_is_no_proof_of_a_shortage_is_not_taken_for_one(message: str, status: str) -> None:
    assert diagnose.explain(f"{message}\n").verdict.status == status
