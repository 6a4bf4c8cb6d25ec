"""`kubectl get pods -o json`: the pods of one job are pieces of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from diagnose.cluster.find import coerce
from diagnose.cluster.find.job import About
from diagnose.cluster.find.job_index import Listed, weight
from diagnose.parse.messages import kubernetes_quantity

#: Labels that name the job that a pod belongs to, of the operators that start jobs; the first that is there holds.
JOB_LABELS = (
    "training.kubeflow.org/job-name",
    "jobset.sigs.k8s.io/jobset-name",
    "volcano.sh/job-name",
    "ray.io/cluster",
    "pytorch-job-name",
    "mpi-job-name",
    "job-name",
    "batch.kubernetes.io/job-name",
    "leaderworkerset.sigs.k8s.io/name",
    "app.kubernetes.io/instance",
)
USER_LABELS = ("user", "owner", "created-by", "app.kubernetes.io/created-by", "submitter")
PROJECT_LABELS = ("project", "team", "kueue.x-k8s.io/queue-name", "volcano.sh/queue-name")
GPU_LABELS = ("nvidia.com/gpu.product", "gpu.nvidia.com/model", "cloud.google.com/gke-accelerator", "node.kubernetes.io/instance-gpu")
_GPUS = re.compile(r"(?:nvidia\.com/(?:gpu|mig-[\w.-]+)|amd\.com/gpu|gpu\.intel\.com/\w+|huawei\.com/Ascend\w*|habana\.ai/gaudi)")


def is_pod(value: object) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("metadata"), dict)
        and (value.get("kind") == "Pod" or "containers" in _of(value, "spec"))
    )


def row(pod: dict[str, Any]) -> Listed | None:
    """One pod as a piece of its job; None for one without a name."""
    about, spec, status = _of(pod, "metadata"), _of(pod, "spec"), _of(pod, "status")
    name = coerce.text(about.get("name"))
    if not name:
        return None
    labels = {**_of(about, "annotations"), **_of(about, "labels")}
    space = coerce.text(about.get("namespace"))
    job = _first(labels, JOB_LABELS) or _owner(about) or name
    ended = _endings(status)
    worst = max(ended, key=lambda one: weight(coerce.text(one.get("reason"))), default={})
    codes = [coerce.exit_code(one.get("exitCode"))[0] for one in ended]
    start = coerce.moment(status.get("startTime")) or _least(coerce.moment(one.get("startedAt")) for one in ended)
    end = _most(coerce.moment(one.get("finishedAt")) for one in ended)
    containers = [one for one in _list(spec, "containers") if isinstance(one, dict)]
    found = About(
        "kubernetes",
        f"{space}/{job}" if space else job,
        _first(labels, USER_LABELS),
        _first(labels, PROJECT_LABELS) or space,
        _state(status, worst),
        coerce.text(status.get("message")),
        next((code for code in codes if code), codes[0] if codes else None),
        next((signal for one in ended if (signal := coerce.count(one.get("signal")))), None),
        1,
        sum(_gpus(one) for one in containers),
        _first({**labels, **_of(spec, "nodeSelector")}, GPU_LABELS),
        coerce.moment(about.get("creationTimestamp")),
        start,
        end,
        end - start if start is not None and end is not None and end >= start else None,
        _most(_memory(one) for one in containers if not _names(worst) or one.get("name") in _names(worst)),
        restarts=_most(coerce.count(one.get("restartCount")) for one in _statuses(status)),
    )
    uid = coerce.text(about.get("uid"))
    names = (name, job, *((f"{space}_{name}_{uid}",) if space and uid else ()))
    return Listed(f"kubernetes:{found.id}", found, names=tuple(dict.fromkeys(names)), part=True, said=found.id)


def _state(status: Mapping[str, Any], worst: Mapping[str, Any]) -> str:
    """How the pod ended: a container's reason where that is a failure, unless the pod did its work after all."""
    reason, phase = coerce.text(worst.get("reason")), coerce.text(status.get("phase"))
    if phase != "Succeeded" and weight(reason):
        return reason
    return coerce.text(status.get("reason")) or phase


def _endings(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How the containers ended, now and before they were started again, each with the container's name."""
    found: list[dict[str, Any]] = []
    for one in _statuses(status):
        for when in ("state", "lastState"):
            ended = _of(_of(one, when), "terminated")
            if ended:
                found.append({**ended, "container": one.get("name")})
    return found


def _statuses(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [one for one in (*_list(status, "containerStatuses"), *_list(status, "initContainerStatuses")) if isinstance(one, dict)]


def _names(ended: Mapping[str, Any]) -> tuple[object, ...]:
    return (ended["container"],) if ended.get("container") else ()


def _gpus(container: Mapping[str, Any]) -> int:
    limits = {**_of(_of(container, "resources"), "requests"), **_of(_of(container, "resources"), "limits")}
    return sum(coerce.count(amount) or 0 for name, amount in limits.items() if _GPUS.fullmatch(str(name)))


def _memory(container: Mapping[str, Any]) -> int | None:
    limit = _of(_of(container, "resources"), "limits").get("memory")
    found = kubernetes_quantity.of(str(limit)) if isinstance(limit, (str, int)) else None
    return found.bytes if found else None


def _owner(about: Mapping[str, Any]) -> str:
    """The job that started the pod, where a controller of jobs did: a ReplicaSet's pods are a service."""
    for one in _list(about, "ownerReferences"):
        if isinstance(one, dict) and coerce.text(one.get("kind")).endswith("Job"):
            return coerce.text(one.get("name"))
    return ""


def _of(value: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _list(value: Mapping[str, Any], key: str) -> list[Any]:
    found = value.get(key)
    return found if isinstance(found, list) else []


def _first(labels: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((found for name in names if (found := coerce.text(labels.get(name)))), "")


def _least(found: Any) -> Any:
    return min((one for one in found if one is not None), default=None)


def _most(found: Any) -> Any:
    return max((one for one in found if one is not None), default=None)
