"""Access to object stores (S3, GCS, Azure) through fsspec."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, BinaryIO, cast

from diagnose.cluster.cluster_errors import finding_error
from diagnose.cluster.find import coerce
from diagnose.errors import UserError

#: URL schemes that are read through fsspec, and the extra that installs what each needs. The web is not among them.
STORES = {"s3": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az"}


def scheme_of(url: str) -> str:
    """The scheme of a store's URL. Raises UserError for others."""
    scheme = url.partition("://")[0].lower()
    if scheme not in STORES:
        raise finding_error("unknown_store", url, "known_stores", stores=", ".join(f"{store}://" for store in STORES))
    return scheme


def connect(url: str) -> tuple[Any, str]:
    """The fsspec file system of a URL, and the path in it. Raises UserError if the extra is missing or the store cannot be reached."""
    scheme = scheme_of(url)
    try:
        import fsspec
    except ImportError as error:
        raise finding_error("store_extra", url, "install_store", extra=STORES[scheme]) from error
    try:
        store, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise finding_error("store_extra", url, "install_store", extra=STORES[scheme]) from error
    except Exception as error:  # each store has errors of its own
        raise store_error(url, error) from error
    return store, path


def store_error(url: str, error: Exception) -> UserError:
    """An error of a store as a UserError."""
    return finding_error("store_failed", url, "check_url", why=str(error)[:200] or type(error).__name__)


def open_object(store: Any, path: str) -> BinaryIO:
    """An object opened for reading; errors of the store become OSError."""
    try:
        return cast("BinaryIO", store.open(path, "rb"))
    except OSError:
        raise
    except Exception as error:
        raise OSError(0, str(error)[:200] or type(error).__name__) from error


def sibling_url(url: str, path: str) -> str:
    """The URL of another path in the same store."""
    return f"{scheme_of(url)}://{path.lstrip('/')}"


def _object_info(url: str) -> dict[str, object]:
    """The metadata of an object; empty if they are unavailable."""
    try:
        store, path = connect(url)
        info: dict[str, object] = store.info(path)
    except Exception:  # each store has errors of its own
        return {}
    return info


def object_mark(url: str) -> str:
    """A text that changes with an object: its size, and the tag or time that the store keeps."""
    info = _object_info(url)
    keys = ("size", "ETag", "etag", "LastModified", "updated", "mtime", "created", "generation")
    return " ".join(str(info.get(key, "")) for key in keys) if info else ""


def object_modified(url: str) -> float | None:
    """When an object was written, in seconds since 1970."""
    return modified_time(_object_info(url))


def modified_time(info: Mapping[str, object]) -> float | None:
    """The modification time in an object's metadata, in seconds since 1970."""
    for key in ("LastModified", "updated", "last_modified", "mtime", "created"):
        value = info.get(key)
        time = value.timestamp() if isinstance(value, datetime) else coerce.timestamp(value)
        if time is not None:
            return time
    return None
