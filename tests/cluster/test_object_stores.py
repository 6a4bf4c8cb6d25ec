"""Buckets through the real clients of their stores, where those are installed, against a small store on this machine.

`pip install '.[gs]'` for one test, `pip install s3fs 'moto[server]'` for the other: too much for every run of the tests.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from diagnose.cluster.find.job import Job, UnreadableJob
from diagnose.cluster.find.job_files import last_modified, open_inputs, stamp
from diagnose.cluster.find.job_finder import find
from diagnose.pipeline import explain

OOM = (
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
    b"GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is free.\n"
)
OBJECTS = {"logs/a/error.log": OOM, "logs/a/train.yaml": b"stage: sft\n", "logs/b.log": b"x" * 9_000_000 + b"\n" + OOM}


class Google(BaseHTTPRequestHandler):
    """What the JSON API of Google Cloud Storage says of one bucket: its objects below a prefix, one of them, a part of its bytes."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = {key: values[0] for key, values in parse_qs(parts.query).items()}
        _, _, name = parts.path.partition("/b/bucket/o")
        name = unquote(name.strip("/"))
        if not name:
            self._told(self._listed(asked.get("prefix", ""), asked.get("delimiter", "")))
        elif name not in OBJECTS:
            self._told({"error": {"code": 404, "message": "No such object"}}, 404)
        elif asked.get("alt") == "media":
            self._bytes(OBJECTS[name])
        else:
            self._told(self._about(name))

    def _listed(self, prefix: str, delimiter: str) -> dict[str, Any]:
        below = [name for name in sorted(OBJECTS) if name.startswith(prefix)]
        cut = {name: name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "") for name in below}
        folders = dict.fromkeys(f"{prefix}{first}/" for first, sign, _ in cut.values() if sign)
        return {"items": [self._about(name) for name, (_, sign, _) in cut.items() if not sign], "prefixes": [*folders]}

    def _about(self, name: str) -> dict[str, Any]:
        size = str(len(OBJECTS[name]))
        return {
            "kind": "storage#object",
            "bucket": "bucket",
            "name": name,
            "size": size,
            "updated": "2026-01-02T03:04:05.000Z",
            "etag": "e",
        }

    def _bytes(self, data: bytes) -> None:
        first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        part = data[int(first) : int(last) + 1 if last else None]
        self._answered(part, 206 if "Range" in self.headers else 200, "application/octet-stream")

    def _told(self, value: dict[str, Any], status: int = 200) -> None:
        self._answered(json.dumps(value).encode(), status, "application/json")

    def _answered(self, body: bytes, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """No line on standard error."""


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    gcsfs = pytest.importorskip("gcsfs")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Google)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server.server_port}")
    gcsfs.GCSFileSystem.clear_instance_cache()
    yield
    gcsfs.GCSFileSystem.clear_instance_cache()
    server.shutdown()
    server.server_close()


@pytest.mark.filterwarnings("default")  # of the client's own
def test_a_bucket_is_read_as_google_speaks(google: None) -> None:
    found = {job.id: job for job in find(["gs://bucket/logs"]) if isinstance(job, Job)}
    assert {name: len(job.configs) for name, job in found.items()} == {"gs://bucket/logs/a": 1, "gs://bucket/logs/b.log": 0}
    assert {last_modified(job) for job in found.values()} == {1767323045.0} and all(map(stamp, found.values()))
    for job in found.values():
        logs, configs = open_inputs(job)
        assert explain(logs, configs=configs).verdict.status == "oom"
    (gone,) = find(["gs://bucket/nothing"])
    assert isinstance(gone, UnreadableJob) and gone.fault == "vanished"


@pytest.mark.filterwarnings("default")  # of the server's and the client's own
def test_a_bucket_is_read_as_s3_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    s3fs, moto = pytest.importorskip("s3fs"), pytest.importorskip("moto.server")
    for name, value in {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://{}:{}".format(*server.get_host_and_port()))
        store = s3fs.S3FileSystem(skip_instance_cache=True)
        store.mkdir("bucket")
        for name, data in {"a/error.log": OOM, "a/train.yaml": b"stage: sft\n", "b.log.gz": gzip.compress(OOM)}.items():
            store.pipe_file(f"bucket/logs/{name}", data)
        found = [job for job in find(["s3://bucket/logs"]) if isinstance(job, Job)]
        assert {job.id: len(job.configs) for job in found} == {"s3://bucket/logs/b.log.gz": 0, "s3://bucket/logs/a": 1}
        assert all(stamp(job) and last_modified(job) and explain(open_inputs(job)[0]).verdict.status == "oom" for job in found)
        (gone,) = find(["s3://bucket/nothing"])
        assert isinstance(gone, UnreadableJob) and gone.fault == "vanished"
    finally:
        server.stop()
