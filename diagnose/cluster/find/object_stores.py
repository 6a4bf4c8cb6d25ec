"""Objects in stores, through fsspec."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, BinaryIO, cast

from diagnose.cluster.find import coerce
from diagnose.errors import UserError
from diagnose.phrases import phrase

#: Stores that are read through fsspec, and the extra that brings what it needs. The web is not among them.
STORES = {"s3": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az"}


def trouble(key: str, where: str, hint: str, **values: object) -> UserError:
    """A complaint whose sentences are in rules/phrases/finding.yaml."""
    return UserError(phrase(f"finding.{key}", **values), where, phrase(f"finding.{hint}", **values), key)


def scheme_of(url: str) -> str:
    """The store of an address. Raises UserError for one that is none."""
    scheme = url.partition("://")[0].lower()
    if scheme not in STORES:
        raise trouble("unknown_store", url, "known_stores", stores=", ".join(f"{each}://" for each in STORES))
    return scheme


def reached(url: str) -> tuple[Any, str]:
    """The store that an address is in, and the path there. Raises UserError where the extra is missing or the store cannot be asked."""
    scheme = scheme_of(url)
    try:
        import fsspec
    except ImportError as error:
        raise trouble("store_extra", url, "install_store", extra=STORES[scheme]) from error
    try:
        store, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise trouble("store_extra", url, "install_store", extra=STORES[scheme]) from error
    except Exception as error:  # each store has errors of its own
        raise failed(url, error) from error
    return store, path


def failed(url: str, error: Exception) -> UserError:
    """What a store raised, as a sentence."""
    return trouble("store_failed", url, "check_url", why=str(error)[:200] or type(error).__name__)


def opened(store: Any, path: str) -> BinaryIO:
    """An object, to be read from its start. Whatever its store raises is an error of reading."""
    try:
        return cast("BinaryIO", store.open(path, "rb"))
    except OSError:
        raise
    except Exception as error:
        raise OSError(0, str(error)[:200] or type(error).__name__) from error


def address(url: str, path: str) -> str:
    """The address of another path in the same store."""
    return f"{scheme_of(url)}://{path.lstrip('/')}"


def _about(url: str) -> dict[str, Any]:
    """What a store says of an object; nothing where it cannot be asked."""
    try:
        store, path = reached(url)
        found: dict[str, Any] = store.info(path)
    except Exception:  # each store has errors of its own
        return {}
    return found


def marks(url: str) -> str:
    """What changes in a store's description of an object when the object does: its size, and whatever tag or time it keeps."""
    about = _about(url)
    keys = ("size", "ETag", "etag", "LastModified", "updated", "mtime", "created", "generation")
    return " ".join(str(about.get(key, "")) for key in keys) if about else ""


def changed(url: str) -> float | None:
    return seconds(_about(url))


def seconds(about: Mapping[str, Any]) -> float | None:
    """When an object was written, as its store says it."""
    for key in ("LastModified", "updated", "last_modified", "mtime", "created"):
        found = about.get(key)
        time = found.timestamp() if isinstance(found, datetime) else coerce.moment(found)
        if time is not None:
            return time
    return None
