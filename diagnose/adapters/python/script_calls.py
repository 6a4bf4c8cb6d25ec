"""Calls of a script: their names, their literals, and the few that say something by themselves."""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Mapping, Sequence

from diagnose.adapters.formats.config_value import MAX_SCRIPT, Unreadable
from diagnose.phrases import phrase

#: Calls whose keyword arguments keep their name; those of a trainer's own configuration are spelled bare.
NAMED = frozenset({"LoraConfig", "BitsAndBytesConfig", "DataLoader", "get_peft_model", "prepare_model_for_kbit_training"})
NAMED |= {"AdamW", "Adam", "AdamW8bit", "Adam8bit", "PagedAdamW", "PagedAdamW32bit", "PagedAdamW8bit", "Lion", "Lion8bit", "Adafactor"}
NAMED |= {"SGD", "RMSprop", "autocast"}
NAMED |= {"DeepSpeedPlugin", "FullyShardedDataParallelPlugin", "gradient_checkpointing_enable"}
NAMED |= {"MultipleNegativesRankingLoss", "MultipleNegativesSymmetricRankingLoss", "SparseMultipleNegativesRankingLoss", "GISTEmbedLoss"}
NAMED |= {"CachedMultipleNegativesRankingLoss", "CachedMultipleNegativesSymmetricRankingLoss", "CachedGISTEmbedLoss", "MegaBatchMarginLoss"}
NAMED |= {"DeepSpeedStrategy", "FSDPStrategy", "DDPStrategy", "ModelParallelStrategy", "BitsandbytesPrecision"}
#: Models of sentence-transformers, and the loader of transformers that each of them uses.
EMBEDDERS = {"SentenceTransformer": "AutoModel", "CrossEncoder": "AutoModelForSequenceClassification"}
#: How transformers names a model with a head: LlamaForCausalLM, Qwen2VLForConditionalGeneration.
_HEAD = re.compile(r"[a-z0-9A-Z]For[A-Z]")
#: Bits of the longest number that means anything.
LONGEST = 1024
#: What of torch.cuda starts CUDA, after which its variables are read no more.
_STARTS = frozenset(
    {
        "init",
        "set_device",
        "current_device",
        "get_device_properties",
        "get_device_name",
        "get_device_capability",
        "mem_get_info",
        "memory_allocated",
        "memory_reserved",
        "synchronize",
        "set_per_process_memory_fraction",
        "manual_seed_all",
    }
)


#: Calls by which a loop of one's own, or a trainer, learns.
_LEARN = frozenset({"backward", "train", "fit", "learn"})


def generating(calls: Sequence[ast.Call], modules: Mapping[str, str]) -> ast.Call | None:
    """The call by which a script that learns nothing generates: a model's generate, or a pipeline of transformers. `modules`: where the
    script's names are imported from."""
    names = [called(call.func) for call in calls]
    if any(name in _LEARN or name.endswith("Trainer") for name in names):
        return None
    ours = modules.get("pipeline", "").startswith("transformers")
    return next((call for call, name in zip(calls, names, strict=True) if name == "generate" or (name == "pipeline" and ours)), None)


def parsed(text: str) -> ast.Module:
    """The script's tree. Raises Unreadable with the place of its first fault."""
    if len(text) > MAX_SCRIPT:
        raise Unreadable("too_large", phrase("adapters.too_large"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as error:
        raise Unreadable(
            "not_python",
            phrase("adapters.not_python", reason=(error.msg or "").replace("{", "(").replace("}", ")")),
            error.lineno or 0,
            error.offset or 0,
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable("not_python", phrase("adapters.not_python", reason=type(error).__name__)) from error
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value.bit_length() > LONGEST:
            node.value = math.inf  # it has more digits than Python prints
    return tree


def called(func: ast.expr) -> str:
    """The last name of what is called: `trl.SFTConfig` is SFTConfig."""
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def late(call: ast.Call) -> ast.Call:
    """`dict(type=X, a=1)`, as configurations of the mmengine family write a call to be made later: X(a=1) in its place."""
    if called(call.func) in ("Config", "Partial") and call.args and isinstance(call.args[0], (ast.Name, ast.Attribute)):  # of nemo_run
        return ast.copy_location(ast.Call(call.args[0], call.args[1:], call.keywords), call)
    made = next((word.value for word in call.keywords if word.arg == "type"), None)
    if called(call.func) != "dict" or not isinstance(made, (ast.Name, ast.Attribute)):
        return call
    return ast.copy_location(ast.Call(made, [], [word for word in call.keywords if word.arg != "type"]), call)


def scalar(node: ast.expr) -> str | None:
    """A literal as text; `torch.bfloat16` is bfloat16; simple arithmetic of numbers is done; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, int, float, bool)):
        return str(node.value)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
        return node.attr
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = scalar(node.operand)
        return f"-{inner}" if inner is not None else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Add, ast.Sub, ast.FloorDiv)):
        return _sum(node)
    return None


def _sum(node: ast.BinOp) -> str | None:
    left, right = scalar(node.left), scalar(node.right)
    if left is None or right is None or not (left.isdecimal() and right.isdecimal()) or len(left) + len(right) > 24:
        return None
    a, b = int(left), int(right)
    if isinstance(node.op, ast.FloorDiv):
        return str(a // b) if b else None
    return str(a * b if isinstance(node.op, ast.Mult) else a + b if isinstance(node.op, ast.Add) else a - b)


def literal(node: ast.expr) -> object:
    """The value of a display of literals; None for anything else."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def loads_model(func: ast.expr) -> bool:
    """AutoModelForCausalLM.from_pretrained, LlamaForCausalLM.from_pretrained and their like."""
    owner = ast.unparse(func.value) if isinstance(func, ast.Attribute) else ""
    last = owner.rpartition(".")[2]
    return ("Model" in last or _HEAD.search(last) is not None) and not last.endswith(("Tokenizer", "Processor")) and last != "PeftModel"


def cuts(call: ast.Call) -> ast.keyword | None:
    """The limit of a call that cuts texts to a length, as tokenizers do: `max_length` where `truncation` is on."""
    words = {word.arg: word for word in call.keywords}
    if "truncation" not in words or scalar(words["truncation"].value) in ("False", "do_not_truncate"):
        return None
    return words.get("max_length")


def moves(call: ast.Call) -> bool:
    """`.cuda()` or `.to("cuda")`, `.to(device)`."""
    name = called(call.func)
    if name == "cuda":
        return isinstance(call.func, ast.Attribute) and not call.args
    if name != "to":
        return False
    target = call.args[0] if call.args else next((word.value for word in call.keywords if word.arg == "device"), None)
    if target is None:
        return False
    text = scalar(target) or ""
    return text.startswith("cuda") or (isinstance(target, ast.Name) and target.id in ("device", "rank", "local_rank", "device_map"))


def starts_cuda(call: ast.Call) -> bool:
    """Is CUDA in use once this is done? Names of devices (`device`) may mean a host."""
    if called(call.func) in _STARTS and isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) in ("torch.cuda", "cuda"):
        return True
    if called(call.func) in ("to", "cuda") and moves(call):
        return called(call.func) == "cuda" or any((scalar(arg) or "").startswith("cuda") for arg in call.args[:1])
    words = {word.arg: word.value for word in call.keywords}
    device = scalar(words["device"]) if "device" in words else None
    return bool(device and device.startswith("cuda"))
