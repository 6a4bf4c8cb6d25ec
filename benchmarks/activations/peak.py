"""Live bytes of a backward pass, counted on the meta device: the working set of one recomputed layer, and of the loss.

Runs in the environment of measure.py and writes peaks.json. Every storage counts from its creation to its release; gradients
and copies of weights are not counted, and no kernel runs: what a kernel takes inside is not seen.
"""

from __future__ import annotations

import argparse
import json
import sys
import weakref
from pathlib import Path
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]
import transformers  # type: ignore[import-not-found, unused-ignore]
from torch.utils._python_dispatch import TorchDispatchMode  # type: ignore[import-not-found, unused-ignore]

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from activations.architectures import ARCHITECTURES  # noqa: E402
from activations.card import attention, fake  # noqa: E402
from activations.measure import ATTENTION, TOKENS, build  # noqa: E402

# ruff: noqa: SLF001 - storages are reached by the names that torch gives them


class Live(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
    """Bytes alive among the tensors made while it is on, and the most there were since `peak` was last set."""

    def __init__(self, ignored: set[tuple[int, ...]]) -> None:
        super().__init__()
        self.ignored, self.now, self.peak, self.known = ignored, 0, 0, set[int]()

    def __torch_dispatch__(self, operator: Any, types: Any, given: Any = (), named: Any = None) -> Any:
        if operator is torch.ops.aten.index_put.default:  # index_backward: the functional form is for tensors like these alone
            operator = torch.ops.aten.index_put_.default
        made = operator(*given, **(named or {}))
        for tensor in torch.utils._pytree.tree_leaves(made):
            if isinstance(tensor, torch.Tensor) and tuple(sorted(tensor.shape)) not in self.ignored:
                self.count(tensor.untyped_storage())
        return made

    def count(self, storage: Any) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self.known:
            return
        self.known.add(key)
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self.release, key, size)

    def release(self, key: int, size: int) -> None:
        self.known.discard(key)
        self.now -= size


#: How the layers of the table are trained. Without autocast adapters share the precision of the base.
KINDS: dict[str, dict[str, Any]] = {
    "full": {},
    "lora attention": {"adapters": "bfloat16", "targets": ATTENTION},
    "lora autocast": {"adapters": "float32", "autocast": True},
    "lora attention autocast": {"adapters": "float32", "autocast": True, "targets": ATTENTION},
    "qlora autocast": {"adapters": "float32", "autocast": True, "quantised": True},
    "qlora attention autocast": {"adapters": "float32", "autocast": True, "quantised": True, "targets": ATTENTION},
}


def layer(name: str, kind: str) -> dict[str, Any]:
    """Bytes kept by the forward of two checkpointed layers, and the most that their backward holds."""
    setup = {"checkpointing": "non-reentrant", **KINDS[kind]}
    cast = setup.get("autocast")
    # Neither the meta device nor fake CUDA tensors run a backward under autocast: fake tensors of the CPU do.
    place = fake("cpu") if cast else torch.device("meta")
    with place, torch.autocast("cpu", torch.bfloat16, enabled=bool(cast)):
        model = build(name, 2, setup)
        if cast and any(isinstance(module, torch.nn.LayerNorm) or "LayerNorm" in type(module).__name__ for module in model.modules()):
            raise ValueError("autocast of the CPU leaves LayerNorm in 16 bits, that of a card does not")
        shapes = {tuple(sorted(parameter.shape)) for parameter in model.parameters()}
        ids = torch.zeros(1, TOKENS, dtype=torch.long)
        inner = model.get_decoder() if hasattr(model, "get_decoder") else model.model
        with Live(shapes) as live:
            found = inner(input_ids=ids, use_cache=False).last_hidden_state.sum()
            forward = live.peak = live.now
            found.backward()
    return {"model": name, "kind": kind, "forward": forward, "backward": live.peak}


def loss(name: str, rows: int) -> dict[str, Any]:
    """Bytes per logit: the most while the loss is computed, what is left behind it, the most in its backward."""
    with torch.device("meta"):
        model = build(name, 1, {})
        entry = model.config
        vocabulary = entry.vocab_size
        ids = torch.zeros(rows, TOKENS // rows, dtype=torch.long)
        hidden = torch.zeros(rows, TOKENS // rows, entry.hidden_size, dtype=torch.bfloat16, requires_grad=True)
        with Live({tuple(sorted(parameter.shape)) for parameter in model.parameters()}) as live:
            found = model.loss_function(logits=model.lm_head(hidden), labels=ids, vocab_size=vocabulary)
            call, left = live.peak, live.now
            live.peak = live.now
            found.backward()
    sizes = {"call": call, "left": left, "backward": live.peak}
    return {"model": name, "rows": rows, **{key: round(size / (TOKENS * vocabulary), 2) for key, size in sizes.items()}}


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--model", action="append", help="only these")
    ask.add_argument("--out", type=Path)
    asked = ask.parse_args()
    transformers.logging.set_verbosity_error()
    torch.nn.functional.scaled_dot_product_attention = attention
    transformers.masking_utils.find_packed_sequence_indices = lambda position_ids: None
    found: dict[str, list[Any]] = {"layers": [], "losses": []}
    for name in asked.model or ARCHITECTURES:
        works: list[tuple[str, Any, Any]] = [("layers", layer, kind) for kind in KINDS] + [("losses", loss, rows) for rows in (1, 2)]
        for key, work, how in works:
            try:
                made = work(name, how)
            except Exception as error:  # operators without a meta kernel: said in the table
                made = {"model": name, "how": how, "refused": f"{type(error).__name__}: {error}".splitlines()[0][:160]}
            print(key, json.dumps(made), file=sys.stderr)
            found[key].append(made)
    if asked.out:
        asked.out.write_text(
            "{\n"
            + ",\n".join(f'"{key}": [\n' + ",\n".join("  " + json.dumps(each) for each in rows) + "\n]" for key, rows in found.items())
            + "\n}\n"
        )


if __name__ == "__main__":
    main()
