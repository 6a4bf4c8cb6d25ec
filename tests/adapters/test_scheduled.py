"""What the scheduler gives a job beside its command: limits of a Kubernetes container, cards that `#SBATCH` asks for."""

from __future__ import annotations

import pytest
from collected import for_each

from diagnose.adapters import config_reader
from diagnose.adapters.formats.settings import ConfigSource, Settings
from diagnose.facts import FactBook
from diagnose.parse.model.reading import Reading
from diagnose.plan.edits import env_edits
from diagnose.plan.patch import patching
from diagnose.units import Size

JOB = """\
apiVersion: batch/v1
kind: Job
spec:
  template:
    spec:
      containers:
        - name: sidecar
          command: ["bash", "-c", "sleep 9"]
          resources: {limits: {memory: 1Gi}}
        - name: trainer
          command: ["bash", "-c"]
          args:
            - |
              torchrun --nproc_per_node 8 train.py --per_device_train_batch_size 2 --output_dir x --num_train_epochs 1
          env:
            - name: PYTORCH_CUDA_ALLOC_CONF
              value: expandable_segments:True
          resources:
            requests: {memory: 3Gi}
            limits:
              memory: 200Gi
              nvidia.com/gpu: 8
"""
RUN = "srun python train.py --per_device_train_batch_size 2 --output_dir x --num_train_epochs 1\n"


def read(name: str, text: str) -> tuple[Settings, FactBook]:
    told = config_reader.read([ConfigSource(name, text.encode())], Reading(), FactBook([]))
    return told, FactBook(told.facts)


def test_the_limits_are_those_of_the_container_that_trains() -> None:
    """A sidecar's limit, and what is only requested, bound nobody."""
    _, book = read("job.yaml", JOB)
    memory = book.fact("host.ram")
    assert memory is not None
    assert (memory.value, memory.witness.key, memory.witness.line) == (Size.exactly(200 * 2**30), "resources.limits.memory", 21)
    assert (book.value("run.cuda_devices"), book.value("parallel.world")) == (8, 8)
    assert book.value("alloc.expandable_segments") is True


@for_each(
    "written, expected",
    [("64G", 64 * 10**9), ("1.5Ti", 3 * 2**39), ("1000000", 10**6), ("lots", None), ("0", None), ("-1Gi", None), ("[1]", None)],
)
def test_a_quantity_is_read_as_kubernetes_reads_it(written: str, expected: int | None) -> None:
    _, book = read("job.yaml", JOB.replace("200Gi", written))
    assert book.value("host.ram") == (None if expected is None else Size.exactly(expected))


@pytest.mark.parametrize(("line", "key"), [("--gres=gpu:h100:4", "#SBATCH --gres"), ("--gpus-per-node=4", "#SBATCH --gpus-per-node")])
def test_cards_that_slurm_gives_are_visible(line: str, key: str) -> None:
    _, book = read("run.sh", f"#!/bin/bash\n#SBATCH {line}\n#SBATCH --mem=500G\n{RUN}")
    fact = book.fact("run.cuda_devices")
    assert fact is not None
    assert (fact.value, fact.witness.key, book.value("host.ram")) == (4, key, Size.exactly(500 * 2**30))


@pytest.mark.parametrize(
    ("header", "cards"), [("--gpus=1", 1), ("--gpus=a100:4\n#SBATCH --nodes=1", 4), ("--gpus=8", None), ("-G 8 -N 2", None)]
)
def test_the_cards_of_a_job_are_visible_where_it_has_one_node(header: str, cards: int | None) -> None:
    _, book = read("run.sh", f"#!/bin/bash\n#SBATCH {header}\n{RUN}")
    assert book.value("run.cuda_devices") == cards


def test_a_script_that_chooses_its_cards_says_which() -> None:
    _, book = read("run.sh", f"#!/bin/bash\n#SBATCH --gres=gpu:8\nexport CUDA_VISIBLE_DEVICES=0,1\n{RUN}")
    assert book.value("run.cuda_devices") == 2


# -- a variable for a container that has none


BARE = JOB.replace("          env:\n            - name: PYTORCH_CUDA_ALLOC_CONF\n              value: expandable_segments:True\n", "")


def changed(text: str) -> str:
    told, book = read("job.yaml", text)
    made = env_edits.edits({"alloc.expandable_segments": True}, book, told.documents)
    return patching.texts(told.documents, made)["job.yaml"] if made else text


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_container_without_variables_gets_its_first(line_end: str) -> None:
    """In the container that trains, beside its keys; an export would be no YAML. Read again it is what was wanted."""
    text = BARE.replace("\n", line_end)
    new = changed(text)
    added = ["          env:", "            - name: PYTORCH_CUDA_ALLOC_CONF", '              value: "expandable_segments:True"', ""]
    assert new == text.replace(f"        - name: trainer{line_end}", f"        - name: trainer{line_end}" + line_end.join(added))
    assert read("job.yaml", new)[1].value("alloc.expandable_segments") is True


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "        - name: trainer\n",
            "        - name: trainer\n          envFrom: [{configMapRef: {name: a}}]\n",
        ),  # its variables stand elsewhere
        ("kind: Job\n", "kind: [\n"),
        ("containers:", "things:"),
    ],
)
def test_what_cannot_be_told_is_left_alone(before: str, after: str) -> None:
    text = BARE.replace(before, after)
    assert changed(text) == text


PYTORCH_JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template: &pod
        spec:
          containers:
            - name: pytorch
              command: [torchrun, --nproc_per_node, "8"{}, train.py, --per_device_train_batch_size, "2", --output_dir, x]
    Worker:
      replicas: 3
      template: *pod
"""


@pytest.mark.parametrize(("option", "nodes", "world"), [("", 4, None), (', --nnodes, "4"', 4, 32), (", --nnodes, $N", None, None)])
def test_the_replicas_of_a_pytorchjob_are_its_nodes(option: str, nodes: int | None, world: int | None) -> None:
    """What its command says of nodes counts; where it says nothing, eight processes are not taken for all there are."""
    _, book = read("job.yaml", PYTORCH_JOB.format(option))
    assert (book.value("parallel.nodes"), book.value("parallel.world")) == (nodes, world)
    assert book.value("train.micro_batch_size") == 2
