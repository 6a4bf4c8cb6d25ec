"""Bytes that real models save for backward, counted without a card: models of transformers on fake CUDA tensors.

Runs in an environment of its own (README.md) and writes measured.json; compare.py sets it against the formulas of the ledger.
"""

# ruff: noqa: SLF001 - operators and storages are reached by the names that torch gives them

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import sys
import time
import weakref
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]
import transformers  # type: ignore[import-not-found, unused-ignore]

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from activations.architectures import ARCHITECTURES, config  # noqa: E402
from activations.card import KERNELS, fake, guard  # noqa: E402
from activations.encoders import HEADS, inputs  # noqa: E402

#: Tokens per forward: no width of any model is a multiple of them, so a tensor without such a side is a copy of weights.
TOKENS = 992

#: The linears of attention, under every name that the models below have for them.
ATTENTION = r".*(attn|attention)\.(q|k|v|o|qkv|kv_a_proj_with_mqa|kv_b|q_a|q_b|query_key_value|dense|c_attn|c_proj|out)(_proj)?"

#: How a model is trained: rows, attention, weights, autocast, adapters, dropout of the adapters, checkpointing.
SETUPS: dict[str, dict[str, Any]] = {
    "full": {},
    "full padded": {"rows": 2},
    "full flash": {"attention": "by_token"},
    "full eager": {"attention": "eager"},
    "full autocast": {"weights": "float32", "autocast": True},
    "full fp32 eager": {"weights": "float32", "attention": "eager"},
    "full autocast eager": {"weights": "float32", "autocast": True, "attention": "eager"},
    "lora bf16": {"adapters": "bfloat16"},
    "lora autocast": {"adapters": "float32", "autocast": True},
    "lora dropout autocast": {"adapters": "float32", "autocast": True, "dropout": 0.05},
    "lora fp32 adapters": {"adapters": "float32"},
    "lora attention autocast": {"adapters": "float32", "autocast": True, "targets": ATTENTION},
    "lora fp32 eager": {"adapters": "float32", "weights": "float32", "attention": "eager"},
    "qlora autocast": {"adapters": "float32", "autocast": True, "quantised": True},
    "qlora dropout autocast": {"adapters": "float32", "autocast": True, "quantised": True, "dropout": 0.05},
    "qlora attention autocast": {"adapters": "float32", "autocast": True, "quantised": True, "targets": ATTENTION},
    "qlora padded autocast": {"adapters": "float32", "autocast": True, "quantised": True, "rows": 2},
    "qlora eager autocast": {"adapters": "float32", "autocast": True, "quantised": True, "attention": "eager"},
    "qlora eager": {"adapters": "float32", "quantised": True, "attention": "eager"},
    "qlora checkpointing": {"adapters": "float32", "autocast": True, "quantised": True, "checkpointing": "non-reentrant"},
    "dora bf16": {"adapters": "bfloat16", "dora": True},
    "dora autocast": {"adapters": "float32", "autocast": True, "dora": True},
    "dora dropout autocast": {"adapters": "float32", "autocast": True, "dora": True, "dropout": 0.05},
    "dora attention autocast": {"adapters": "float32", "autocast": True, "dora": True, "targets": ATTENTION},
    "qdora autocast": {"adapters": "float32", "autocast": True, "quantised": True, "dora": True},
    "checkpointing": {"checkpointing": "non-reentrant"},
    "checkpointing reentrant": {"checkpointing": "reentrant"},
    "checkpointing autocast": {"checkpointing": "non-reentrant", "weights": "float32", "autocast": True},
}


class Quantised(torch.nn.Linear):  # type: ignore[misc, unused-ignore]
    """A frozen linear as bitsandbytes' Linear4bit computes it: input and bias in 16 bits, the output in the input's precision; nothing is
    kept of the input (nn/modules.py Linear4bit.forward, autograd/_functions.py MatMul4Bit from 0.43.2 on)."""

    def forward(self, given: Any) -> Any:
        bias = None if self.bias is None else self.bias.to(torch.bfloat16)
        return torch.nn.functional.linear(given.to(torch.bfloat16), self.weight, bias).to(given.dtype)


def quantised(model: Any) -> Any:
    """The model as PEFT's prepare_model_for_kbit_training leaves it: linears of the layers in few bits, all else in fp32."""
    head = model.get_output_embeddings()
    for parent in list(model.modules()):
        for name, module in list(parent.named_children()):
            if isinstance(module, transformers.pytorch_utils.Conv1D):  # GPT-2's linears lie on their side
                setattr(parent, name, Quantised(*module.weight.shape))
            elif type(module) is torch.nn.Linear and module is not head:
                module.__class__ = Quantised
    made: dict[int, Any] = {}
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            if not (isinstance(module, Quantised) and name == "weight"):
                fresh = made.setdefault(id(parameter), torch.nn.Parameter(parameter.detach().float(), requires_grad=False))
                setattr(module, name, fresh)
    return model


def build(name: str, layers: int, setup: dict[str, Any]) -> Any:
    """The model with its output head, in training mode."""
    torch.set_default_dtype(getattr(torch, setup.get("weights", "bfloat16")))
    entry = config(name, layers)
    kind = entry["model_type"]
    asked = transformers.AutoConfig.for_model(kind, **{key: value for key, value in entry.items() if key != "model_type"})
    asked._attn_implementation = setup.get("attention", "sdpa")
    made = getattr(transformers, HEADS.get(kind, "AutoModelForCausalLM")).from_config(asked, dtype=torch.get_default_dtype())
    made.config.use_cache = False
    if setup.get("quantised"):
        made = quantised(made)
    if "adapters" in setup:
        made = adapted(made, setup)
    mode = setup.get("checkpointing")
    if mode:
        made.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": mode == "reentrant"})
        if mode == "reentrant" or "adapters" in setup:
            made.enable_input_require_grads()
    return made.train()


def adapted(model: Any, setup: dict[str, Any]) -> Any:
    """The model with adapters of rank 16 on all linears, or on those of attention."""
    from peft import LoraConfig, get_peft_model  # type: ignore[import-not-found, unused-ignore]

    # Adapters are made on the right device in the wanted precision: a move would exchange fake parameters.
    torch.nn.Module.to = lambda module, *_, **__: module
    torch.set_default_dtype(getattr(torch, setup["adapters"]))
    dropout, targets = setup.get("dropout", 0.0), setup.get("targets", "all-linear")
    kind = {"use_dora": setup.get("dora", False), "task_type": None if model.config.model_type in HEADS else "CAUSAL_LM"}
    asked = LoraConfig(r=16, lora_alpha=16, lora_dropout=dropout, target_modules=targets, **kind)
    return get_peft_model(model, asked, autocast_adapter_dtype=False)


class Kept:
    """A tensor that the graph holds for backward: it is there as long as the graph is."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


def saved(
    name: str, layers: int, setup: dict[str, Any], *, loss: bool = False
) -> tuple[dict[str, int], list[tuple[int, tuple[int, ...], str]]]:
    """Bytes saved for backward by one forward, storages counted once, parameters not: of activations, and of copies of weights."""
    with fake():
        model = build(name, layers, setup)
        own = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
        held: weakref.WeakSet[Kept] = weakref.WeakSet()

        def pack(tensor: Any) -> Kept:
            held.add(one := Kept(tensor))
            return one

        rows = setup.get("rows", 1)
        ids = torch.zeros(rows, TOKENS // rows, dtype=torch.long, device="cuda")
        given = {"input_ids": ids, "use_cache": False}
        if rows > 1:
            given["attention_mask"] = torch.ones(rows, TOKENS // rows, dtype=torch.long, device="cuda")
        kind = config(name, layers)["model_type"]
        if kind in HEADS:
            image, sound = (torch.zeros(rows, *shape, device="cuda") for shape in ((3, 16 * (TOKENS - 1), 16), (128, 2 * TOKENS // rows)))
            weights = torch.get_default_dtype()
            given = inputs(kind, given, image.to(weights), sound.to(weights))
        if loss:
            given["labels"] = ids
        cast = torch.autocast("cuda", torch.bfloat16) if setup.get("autocast") else contextlib.nullcontext()
        with cast, torch.autograd.graph.saved_tensors_hooks(pack, lambda one: one.tensor):
            found = model(**given)  # the graph lives as long as what it gives
        kept = {one.tensor.untyped_storage()._cdata: one.tensor for one in held if one.tensor.untyped_storage()._cdata not in own}
        del found
        every = [
            (tensor.untyped_storage().nbytes(), tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")) for tensor in kept.values()
        ]
    length = TOKENS // setup.get("rows", 1)
    weights = sum(size for size, shape, _ in every if all(side % length for side in shape))
    return {"activations": sum(size for size, _, _ in every) - weights, "weights": weights}, every


def row(name: str, setup_name: str) -> dict[str, Any]:
    """One layer's share (three layers less two) and the stem (two layers less two layers' share)."""
    setup = SETUPS[setup_name]
    KERNELS.clear()
    two, _ = saved(name, 2, setup)
    three, _ = saved(name, 3, setup)
    layer = {key: three[key] - two[key] for key in two}
    return {
        "model": name,
        "setup": setup_name,
        "kernel": "+".join(sorted(KERNELS)) or "eager",
        "layer": layer["activations"],
        "layer_weights": layer["weights"],
        "stem": two["activations"] - 2 * layer["activations"],
    }


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--model", action="append", help="only these")
    ask.add_argument("--setup", action="append", help="only these")
    ask.add_argument("--list", action="store_true", help="print the saved tensors of a third layer")
    ask.add_argument("--out", type=Path, default=None, help="merge the rows into this file")
    asked = ask.parse_args()
    guard()
    transformers.logging.set_verbosity_error()
    for name in asked.model or ARCHITECTURES:
        for setup_name in asked.setup or SETUPS:
            start = time.perf_counter()
            try:
                made = row(name, setup_name)
            except Exception as error:  # an architecture without this kernel, or an operator that fake tensors refuse: said in the table
                made = {"model": name, "setup": setup_name, "refused": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
            print(
                json.dumps(made), f"{time.perf_counter() - start:.1f}s", round(made.get("layer", 0) / TOKENS), file=sys.stderr, flush=True
            )
            if asked.list and "layer" in made:
                third(name, SETUPS[setup_name])
            if asked.out:
                merge(asked.out, made)
            gc.collect()


def third(name: str, setup: dict[str, Any]) -> None:
    """What the third layer adds, in bytes per token."""
    from collections import Counter

    fewer, more = (Counter(saved(name, layers, setup)[1]) for layers in (2, 3))
    for (size, shape, kind), count in sorted((more - fewer).items(), reverse=True):
        print(f"  {count} x {size / TOKENS:10.1f} {shape} {kind}")


def merge(where: Path, made: dict[str, Any]) -> None:
    """Put a row into the file in place of the one of the same model and setup."""
    known: dict[str, Any] = json.loads(where.read_text()) if where.exists() else {"rows": []}
    known["versions"] = {name: version(name) for name in ("torch", "transformers", "peft")}
    known["tokens"] = TOKENS
    rows = {(each["model"], each["setup"]): each for each in known["rows"]} | {(made["model"], made["setup"]): made}
    order = [(model, setup) for model in ARCHITECTURES for setup in SETUPS]
    known["rows"] = sorted(rows.values(), key=lambda each: order.index((each["model"], each["setup"])))
    text = ",\n".join("  " + json.dumps(each) for each in known["rows"])
    head = json.dumps({"versions": known["versions"], "tokens": TOKENS})[:-1]
    where.write_text(f'{head}, "rows": [\n{text}\n]}}\n')


if __name__ == "__main__":
    main()
