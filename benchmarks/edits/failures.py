"""Eight failures as torch, an engine and the kernel tell them, on cards of four sizes."""

from __future__ import annotations

SITE = "/opt/venv/lib/python3.11/site-packages/"

#: Capacities as torch prints them, GiB, and the names of the cards.
CARDS = {"RTX 4090": 23.64, "A100-40GB": 39.39, "H100-80GB": 79.15, "H200": 139.72}

FRAMES = {
    "forward": [("transformers/models/llama/modeling_llama.py", "forward", "down_proj = self.down_proj(self.act_fn(self.gate_proj(x)))")],
    "loss": [
        ("transformers/trainer.py", "training_step", "loss = self.compute_loss(model, inputs)"),
        ("transformers/loss/loss_utils.py", "ForCausalLMLoss", "logits = logits.float()"),
        ("torch/nn/functional.py", "cross_entropy", "return torch._C._nn.cross_entropy_loss("),
    ],
    "backward": [
        ("transformers/trainer.py", "training_step", "self.accelerator.backward(loss, **kwargs)"),
        ("torch/autograd/graph.py", "_engine_run_backward", "return Variable._execution_engine.run_backward("),
    ],
    "optimizer": [
        ("torch/optim/adamw.py", "_init_group", 'state["exp_avg"] = torch.zeros_like('),
    ],
    "loading": [
        ("transformers/modeling_utils.py", "from_pretrained", "model, missing = cls._load_pretrained_model("),
        ("torch/nn/modules/module.py", "convert", "return t.to("),
    ],
    "evaluation": [
        (
            "transformers/trainer.py",
            "evaluation_loop",
            "losses, logits, labels = self.prediction_step(model, inputs, prediction_loss_only)",
        ),
        ("transformers/trainer_pt_utils.py", "nested_concat", "return torch_pad_and_concatenate(tensors, new_tensors)"),
    ],
}
KINDS = (*FRAMES, "host", "engine")


def log(kind: str, card: str) -> str:
    """The end of a log."""
    if kind == "host":
        return (
            "E0206 10:11:12.513000 31 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) "
            "local_rank: 0 (pid: 4711) of binary: /opt/venv/bin/python\n"
        )
    if kind == "engine":
        return (
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
        )
    capacity = CARDS[card]
    lines = ["Traceback (most recent call last):"]
    for place, function, statement in FRAMES[kind]:
        lines += [f'  File "{SITE}{place}", line 812, in {function}', f"    {statement}"]
    lines.append(
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.86 GiB. GPU 0 has a total capacity of {capacity:.2f} GiB of "
        f"which 0.71 GiB is free. Including non-PyTorch memory, this process has {capacity - 0.75:.2f} GiB memory in use. Of the allocated "
        "memory "
        f"{capacity - 2.9:.2f} GiB is allocated by PyTorch, and 1.42 GiB is reserved by PyTorch but unallocated."
    )
    return "\n".join(lines) + "\n"
