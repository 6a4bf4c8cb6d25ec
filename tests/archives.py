"""Logs as they lie compressed and in archives, and what is told of them."""

from __future__ import annotations

import io
import tarfile
import zipfile
from typing import Any

from diagnose.pipeline import explain

MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.23 GiB"
    " is free. Including non-PyTorch memory, this process has 77.91 GiB memory in use. Of the allocated memory 75.10 GiB is allocated"
    " by PyTorch, and 1.52 GiB is reserved by PyTorch but unallocated.\n"
)

LOG = b"".join(b"step %d loss 1.%03d\n" % (i, i) for i in range(2000)) + MESSAGE.encode()


def tar(members: dict[str, bytes], mode: str = "w:", **header: Any) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, **header) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(data)
            archive.addfile(about, io.BytesIO(data))
    return out.getvalue()


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def told(*logs: Any, **options: Any) -> dict[str, Any]:
    return explain(list(logs), **options).to_dict("en")
