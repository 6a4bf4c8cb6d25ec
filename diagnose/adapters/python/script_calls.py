"""Calls of a Python script: their names and literals, and the predicates on single calls."""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise

from diagnose.adapters.formats.config_value import MAX_SCRIPT, Unreadable
from diagnose.phrases import phrase

#: Calls whose keywords become keys prefixed with the call's name; those of a trainer's configuration are not prefixed.
PREFIXED = frozenset({"LoraConfig", "BitsAndBytesConfig", "DataLoader", "get_peft_model", "prepare_model_for_kbit_training"})
PREFIXED |= {"AdamW", "Adam", "AdamW8bit", "Adam8bit", "PagedAdamW", "PagedAdamW32bit", "PagedAdamW8bit", "Lion", "Lion8bit", "Adafactor"}
PREFIXED |= {"SGD", "RMSprop", "autocast", "backward"}
PREFIXED |= {"DeepSpeedPlugin", "FullyShardedDataParallelPlugin", "gradient_checkpointing_enable"}
PREFIXED |= {"MultipleNegativesRankingLoss", "MultipleNegativesSymmetricRankingLoss", "SparseMultipleNegativesRankingLoss", "GISTEmbedLoss"}
PREFIXED |= {"CachedMultipleNegativesRankingLoss", "CachedMultipleNegativesSymmetricRankingLoss"}
PREFIXED |= {"CachedGISTEmbedLoss", "MegaBatchMarginLoss"}
PREFIXED |= {"DeepSpeedStrategy", "FSDPStrategy", "DDPStrategy", "ModelParallelStrategy", "BitsandbytesPrecision"}
#: PEFT's configurations beside LoraConfig: their keywords become keys of PeftConfig, whose value is the class.
PEFT_CONFIGS = frozenset(
    {"AdaLoraConfig", "IA3Config", "VeraConfig", "LoHaConfig", "LoKrConfig", "OFTConfig", "BOFTConfig", "LNTuningConfig"}
)
PEFT_CONFIGS |= {"PromptTuningConfig", "PromptEncoderConfig", "PrefixTuningConfig"}
#: Models of sentence-transformers, and the loader of transformers that each of them uses.
EMBEDDERS = {"SentenceTransformer": "AutoModel", "CrossEncoder": "AutoModelForSequenceClassification"}
#: How transformers names a model with a head: LlamaForCausalLM, Qwen2VLForConditionalGeneration.
_HEAD = re.compile(r"[a-z0-9A-Z]For[A-Z]")
#: Bits of an integer literal; a longer one is read as infinite.
MAX_INT_BITS = 1024
#: The largest exponent that arithmetic of literals is computed with.
_MAX_POWER = 8
_PAIRS = {"(": ")", "[": "]", "{": "}"}
#: Functions of torch.cuda that initialise CUDA, which reads its environment variables only then.
_CUDA_STARTERS = frozenset(
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
#: Calls by which a training loop or a trainer trains.
_TRAINING_CALLS = frozenset({"backward", "train", "fit", "learn"})


def generation_call(calls: Sequence[ast.Call], modules: Mapping[str, str]) -> ast.Call | None:
    """The call by which a script that trains nothing generates: a model's generate, or a pipeline of transformers.

    `modules` are the modules that the script's names are imported from.
    """
    names = [callee_name(call.func) for call in calls]
    if any(name in _TRAINING_CALLS or name.endswith("Trainer") for name in names):
        return None
    is_transformers = modules.get("pipeline", "").startswith("transformers")
    return next(
        (call for call, name in zip(calls, names, strict=True) if name == "generate" or (name == "pipeline" and is_transformers)), None
    )


@lru_cache(maxsize=2)
def nodes_of(tree: ast.Module) -> tuple[ast.AST, ...]:
    """All nodes of a script, as `ast.walk` has them. Every reader of a script asks for them."""
    return tuple(ast.walk(tree))


#: The parts of the name of a module that is imported.
MOST_PARTS = 500


@lru_cache(maxsize=1)
def parsed(text: str) -> ast.Module:
    """A text's tree, which nobody changes: several readers ask for that of one text. Raises what `ast.parse` raises. Of a module's name
    Python's parser keeps every beginning, so that one of 30,000 parts would take a GiB."""
    if any(line.count(".") > MOST_PARTS and line.lstrip().startswith(("from ", "import ")) for line in text.split("\n")):
        raise SyntaxError(f"a module's name has more than {MOST_PARTS} parts")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _parsed_to_its_end(text: str) -> ast.Module:
    """The tree of a script; one whose end was cut off within brackets ends with its last whole line."""
    try:
        return parsed(text)
    except SyntaxError as error:
        lines = text.rstrip().split("\n")
        for end in (len(lines), len(lines) - 1):
            closing = closing_brackets(lines[:end])
            if closing and (error.lineno or 0) < end and "\n".join(lines[:end]).count('"""') % 2 == 0:
                with suppress(SyntaxError):
                    return parsed("\n".join([*lines[:end], closing]))
        raise error


def closing_brackets(lines: Sequence[str]) -> str:
    """The brackets that close what code leaves open at its end; "" where its brackets contradict each other."""
    pending: list[str] = []
    for char in re.findall(r"[()\[\]{}]", re.sub(r"'[^'\n]*'|\"[^\"\n]*\"|#.*", "", "\n".join(lines))):
        if char in _PAIRS:
            pending.append(_PAIRS[char])
        elif not pending or pending.pop() != char:
            return ""
    return "".join(reversed(pending))


def parse_script(text: str) -> ast.Module:
    """The script's tree. Raises Unreadable with the place of the first syntax error."""
    if len(text) > MAX_SCRIPT:
        raise Unreadable("too_large", phrase("adapters.too_large"))
    try:
        tree = _parsed_to_its_end(text)
    except SyntaxError as error:
        raise Unreadable(
            "not_python",
            phrase("adapters.not_python", reason=(error.msg or "").replace("{", "(").replace("}", ")")),
            error.lineno or 0,
            error.offset or 0,
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable("not_python", phrase("adapters.not_python", reason=type(error).__name__)) from error
    for node in nodes_of(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value.bit_length() > MAX_INT_BITS:
            node.value = math.inf  # int to str is limited to some thousand digits
    return tree


def callee_name(func: ast.expr) -> str:
    """The last name of the callee: `trl.SFTConfig` is SFTConfig."""
    return _last_name(func)


def late_zero_grad(nodes: Sequence[ast.AST]) -> ast.Call | None:
    """A zero_grad that stands right before the backward pass of a loss that is there already, so that the gradients of the step before
    last through the forward pass."""
    for node in nodes:
        block = getattr(node, "body", None)
        for here, after in pairwise(block) if isinstance(block, list) else ():
            freed, back = _called(here), _called(after)
            if freed is not None and back is not None and callee_name(freed.func) == "zero_grad" and callee_name(back.func) == "backward":
                loss = back.args[0] if back.args else back.func.value if isinstance(back.func, ast.Attribute) else back
                calls = [callee_name(call.func) for call in ast.walk(loss) if isinstance(call, ast.Call)]
                if set(calls) <= {"scale"}:
                    return freed
    return None


#: Conversions of logits to another precision.
_CONVERSIONS = ("float", "double", "to", "type")


def loss_of_logits(nodes: Sequence[ast.AST]) -> ast.Call | None:
    """A cross entropy of logits as the model gave them: one that the script takes itself, where it converts no logits."""
    made = {
        _last_name(target)
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and callee_name(node.value.func) == "CrossEntropyLoss"
        for target in node.targets
    } - {""}
    found = None
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        if callee_name(node.func) in _CONVERSIONS and isinstance(node.func, ast.Attribute) and _speaks_of_logits(node.func.value):
            return None
        if callee_name(node.func) in {"cross_entropy", *made} and node.args and _speaks_of_logits(node.args[0]):
            found = found or node
    return found


def function_of_loss(nodes: Sequence[ast.AST], loss: ast.Call) -> ast.FunctionDef | None:
    """The function around the loss, where it makes the logits, ends before backward and hands out the loss alone: nothing holds them
    any more."""
    around = [node for node in nodes if isinstance(node, ast.FunctionDef) and any(part is loss for part in ast.walk(node))]
    if not around:
        return None
    function = min(around, key=lambda node: (node.end_lineno or 0) - node.lineno)
    inner = list(ast.walk(function))
    handed = [node.value for node in inner if isinstance(node, ast.Return) and node.value is not None]
    made = any(isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and "logits" in node.id for node in inner)
    back = any(isinstance(node, ast.Call) and callee_name(node.func) == "backward" for node in inner)
    returned = any(_last_name(part).endswith("logits") for value in handed for part in _parts(value))
    return function if made and handed and not back and not returned else None


def _parts(value: ast.expr) -> list[ast.expr]:
    """What a function hands out, one by one."""
    return list(value.elts) if isinstance(value, ast.Tuple) else [value]


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _speaks_of_logits(node: ast.expr) -> bool:
    return any("logits" in _last_name(part) for part in ast.walk(node) if isinstance(part, (ast.Attribute, ast.Name)))


def _called(statement: ast.AST) -> ast.Call | None:
    """The call that a statement is."""
    return statement.value if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None


def deferred_call(call: ast.Call) -> ast.Call:
    """`dict(type=X, a=1)` of mmengine configs, `Config(X, a=1)` of nemo_run: the call X(a=1) that is made later. Else the call itself."""
    if callee_name(call.func) in ("Config", "Partial") and call.args and isinstance(call.args[0], (ast.Name, ast.Attribute)):  # of nemo_run
        return ast.copy_location(ast.Call(call.args[0], call.args[1:], call.keywords), call)
    callee = next((word.value for word in call.keywords if word.arg == "type"), None)
    if callee_name(call.func) != "dict" or not isinstance(callee, (ast.Name, ast.Attribute)):
        return call
    return ast.copy_location(ast.Call(callee, [], [word for word in call.keywords if word.arg != "type"]), call)


def scalar_text(node: ast.expr) -> str | None:
    """A literal as text; `torch.bfloat16` is bfloat16; arithmetic of whole numbers is computed; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, int, float, bool)):
        return str(node.value)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
        return node.attr
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = scalar_text(node.operand)
        return f"-{inner}" if inner is not None else None
    if isinstance(node, ast.BinOp):
        return _arithmetic_text(node)
    if isinstance(node, ast.Call) and callee_name(node.func) == "int" and len(node.args) == 1 and isinstance(node.args[0], ast.BinOp):
        return _arithmetic_text(node.args[0])
    return None


def _arithmetic_text(node: ast.BinOp) -> str | None:
    left, right = scalar_text(node.left), scalar_text(node.right)
    if left is None or right is None or not (left.isdecimal() and right.isdecimal()) or len(left) + len(right) > 24:
        return None
    first, second = int(left), int(right)
    match node.op:
        case ast.Mult():
            return str(first * second)
        case ast.Add():
            return str(first + second)
        case ast.Sub():
            return str(first - second)
        case ast.FloorDiv() if second:
            return str(first // second)
        case ast.Div() if second and first % second == 0:
            return str(first // second)
        case ast.Pow() if second <= _MAX_POWER:
            return str(first**second)
    return None


def literal_value(node: ast.expr) -> object:
    """The value of a literal or a display of literals; None for anything else."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def loads_model(func: ast.expr) -> bool:
    """Whether a callee is AutoModelForCausalLM.from_pretrained, LlamaForCausalLM.from_pretrained or the like."""
    owner = ast.unparse(func.value) if isinstance(func, ast.Attribute) else ""
    last = owner.rpartition(".")[2]
    return ("Model" in last or _HEAD.search(last) is not None) and not last.endswith(("Tokenizer", "Processor")) and last != "PeftModel"


def truncation_limit(call: ast.Call) -> ast.keyword | None:
    """The `max_length` of a call that truncates texts, as tokenizers do with `truncation` on."""
    words = {word.arg: word for word in call.keywords}
    if "truncation" not in words or scalar_text(words["truncation"].value) in ("False", "do_not_truncate"):
        return None
    return words.get("max_length")


def moves_to_card(call: ast.Call) -> bool:
    """Whether a call moves a model or a tensor: `.cuda()`, `.to("cuda")`, `.to(device)`."""
    name = callee_name(call.func)
    if name == "cuda":
        return isinstance(call.func, ast.Attribute) and not call.args
    if name != "to":
        return False
    target = call.args[0] if call.args else next((word.value for word in call.keywords if word.arg == "device"), None)
    if target is None:
        return False
    text = scalar_text(target) or ""
    return (
        text.startswith("cuda")
        or text.isdecimal()
        or (isinstance(target, ast.Name) and target.id in ("device", "rank", "local_rank", "device_map"))
    )


def starts_cuda(call: ast.Call) -> bool:
    """Whether CUDA is initialised once the call is made. A variable such as `device` may mean the host and does not count."""
    name = callee_name(call.func)
    if name in _CUDA_STARTERS and isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) in ("torch.cuda", "cuda"):
        return True
    if name in ("to", "cuda") and moves_to_card(call):
        return name == "cuda" or any((scalar_text(arg) or "").startswith("cuda") for arg in call.args[:1])
    words = {word.arg: word.value for word in call.keywords}
    device = scalar_text(words["device"]) if "device" in words else None
    return bool(device and device.startswith("cuda"))
