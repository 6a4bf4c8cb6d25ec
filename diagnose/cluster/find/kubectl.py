"""The output of `kubectl get pods -o json`: each pod is a part of its job."""

from __future__ import annotations

import re
from collections.abc import Mapping

from diagnose.cluster.find import coerce
from diagnose.cluster.find.job import About, state_severity
from diagnose.cluster.find.job_index import JobRecord
from diagnose.parse.messages import scheduler_oom

#: Labels in which the operators that start jobs name the job of a pod; the first that is present holds.
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
        and (value.get("kind") == "Pod" or "containers" in _mapping(value, "spec"))
    )


def read_record(pod: dict[str, object]) -> JobRecord | None:
    """One pod as a part of its job; None if it has no name."""
    metadata, spec, status = _mapping(pod, "metadata"), _mapping(pod, "spec"), _mapping(pod, "status")
    name = coerce.text(metadata.get("name"))
    if not name:
        return None
    labels = {**_mapping(metadata, "annotations"), **_mapping(metadata, "labels")}
    namespace = coerce.text(metadata.get("namespace"))
    job = _first_label(labels, JOB_LABELS) or _owner_job(metadata) or name
    terminations = _terminations(status)
    worst = max(terminations, key=lambda termination: state_severity(coerce.text(termination.get("reason"))), default={})
    codes = [coerce.exit_code(termination.get("exitCode"))[0] for termination in terminations]
    start = coerce.timestamp(status.get("startTime")) or coerce.smallest(
        coerce.timestamp(termination.get("startedAt")) for termination in terminations
    )
    end = coerce.largest(coerce.timestamp(termination.get("finishedAt")) for termination in terminations)
    containers = [container for container in _list(spec, "containers") if isinstance(container, dict)]
    worst_name = worst.get("container")
    about = About(
        scheduler="kubernetes",
        id=f"{namespace}/{job}" if namespace else job,
        user=_first_label(labels, USER_LABELS),
        project=_first_label(labels, PROJECT_LABELS) or namespace,
        state=_state(status, worst),
        reason=coerce.text(status.get("message")),
        exit_code=next((code for code in codes if code), codes[0] if codes else None),
        signal=next((signal for termination in terminations if (signal := coerce.count(termination.get("signal")))), None),
        nodes=1,
        gpus=sum(_gpus(container) for container in containers),
        gpu=_first_label({**labels, **_mapping(spec, "nodeSelector")}, GPU_LABELS),
        submitted=coerce.timestamp(metadata.get("creationTimestamp")),
        started=start,
        ended=end,
        elapsed=end - start if start is not None and end is not None and end >= start else None,
        memory_limit=coerce.largest(
            _memory_limit(container) for container in containers if not worst_name or container.get("name") == worst_name
        ),
        restarts=coerce.largest(coerce.count(container.get("restartCount")) for container in _container_statuses(status)),
    )
    uid = coerce.text(metadata.get("uid"))
    aliases = (name, job, *((f"{namespace}_{name}_{uid}",) if namespace and uid else ()))
    return JobRecord(f"kubernetes:{about.id}", about, aliases=tuple(dict.fromkeys(aliases)), is_part=True, name=about.id)


def _state(status: Mapping[str, object], worst: Mapping[str, object]) -> str:
    """How the pod ended: the reason of its worst container, unless the pod succeeded."""
    reason, phase = coerce.text(worst.get("reason")), coerce.text(status.get("phase"))
    if phase != "Succeeded" and state_severity(reason):
        return reason
    return coerce.text(status.get("reason")) or phase


def _terminations(status: Mapping[str, object]) -> list[dict[str, object]]:
    """Ends of the containers, now and before a restart, with the container names."""
    terminations: list[dict[str, object]] = []
    for container in _container_statuses(status):
        for state in ("state", "lastState"):
            terminated = _mapping(_mapping(container, state), "terminated")
            if terminated:
                terminations.append({**terminated, "container": container.get("name")})
    return terminations


def _container_statuses(status: Mapping[str, object]) -> list[dict[str, object]]:
    statuses = (*_list(status, "containerStatuses"), *_list(status, "initContainerStatuses"))
    return [container for container in statuses if isinstance(container, dict)]


def _gpus(container: Mapping[str, object]) -> int:
    resources = _mapping(container, "resources")
    limits = {**_mapping(resources, "requests"), **_mapping(resources, "limits")}
    return sum(coerce.count(amount) or 0 for name, amount in limits.items() if _GPUS.fullmatch(str(name)))


def _memory_limit(container: Mapping[str, object]) -> int | None:
    """The container's limit of host memory in bytes."""
    limit = _mapping(_mapping(container, "resources"), "limits").get("memory")
    size = scheduler_oom.parse_quantity(str(limit)) if isinstance(limit, (str, int)) else None
    return size.bytes if size else None


def _owner_job(metadata: Mapping[str, object]) -> str:
    """The job whose controller started the pod; empty for other owners (pods of a ReplicaSet are a service)."""
    for owner in _list(metadata, "ownerReferences"):
        if isinstance(owner, dict) and coerce.text(owner.get("kind")).endswith("Job"):
            return coerce.text(owner.get("name"))
    return ""


def _mapping(value: Mapping[str, object], key: str) -> dict[str, object]:
    item = value.get(key)
    return item if isinstance(item, dict) else {}


def _list(value: Mapping[str, object], key: str) -> list[object]:
    item = value.get(key)
    return item if isinstance(item, list) else []


def _first_label(labels: Mapping[str, object], names: tuple[str, ...]) -> str:
    return next((text for name in names if (text := coerce.text(labels.get(name)))), "")
