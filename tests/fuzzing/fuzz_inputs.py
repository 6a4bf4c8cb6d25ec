"""Inputs for the fuzzer: logs and configs of the corpus, spliced, bent and packed as people and machines do it; each of a number."""

from __future__ import annotations

import gzip
import io
import json
import random
import shlex
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import hostile_values

from diagnose import rule_files

ROOT = Path(__file__).resolve().parents[2]
CONFIG_SUFFIXES = (".yaml", ".yml", ".json", ".toml", ".sh", ".py", ".sbatch", ".slurm", ".ipynb", ".cfg")
LOG_SUFFIXES = (".log", ".out", ".err", ".txt")
MAX_BYTES = 400_000
MESSAGE = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
#: Configs of models, as short as a reader takes them.
MODELS = (
    {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
     "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "torch_dtype": "bfloat16", "tie_word_embeddings": False},
    {"model_type": "qwen3_moe", "hidden_size": 2048, "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8,
     "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936},
    {"model_type": "qwen2_vl", "hidden_size": 3584, "num_hidden_layers": 28, "intermediate_size": 18944, "num_attention_heads": 28,
     "vocab_size": 152064, "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 3584, "num_heads": 16, "patch_size": 14}},
    {"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61, "n_routed_experts": 256, "kv_lora_rank": 512,
     "q_lora_rank": 1536,
     "num_attention_heads": 128, "vocab_size": 129280, "layer_types": ["full_attention"], "quantization_config": {"quant_method": "fp8"}},
)  # fmt: skip

#: What stands where a figure or a word is expected.
VALUES = (
    "0", "-1", "1000000000", "9" * 30, "1e308", "1e999", "nan", "inf", "-inf", "0..", "1.2.3", "٣", "²", "0x10", "1_000", "true", "null",
    "None", "[]", "{}", "''", '"', "'", "\\", "`", "$(id)", "${x}", "${{x}}", "%s", "*a", "&a 1", "!!python/object:x", "|", ">", "? a",
    "<<", "#", "-", "\u2014", "\u2028", "\x85", "\x0c", "\r", "\0", "\ud800", "\x1b[2J", "\u202e", "训练", "A" * 3000,
    "a: b: c", "--x", "a=b=c",
    "(A and B)", "lambda: 0",
)  # fmt: skip


@dataclass(slots=True)
class Case:
    """What `explain` is given: logs, configs with their names, and options. `carrier` says how they are packed."""

    seed: int
    carrier: str
    logs: list[bytes] = field(default_factory=list)
    configs: list[tuple[str, bytes]] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)


@cache
def corpus(suffixes: tuple[str, ...]) -> list[tuple[str, bytes]]:
    """The files of the corpus with these suffixes: name and content."""
    paths = (path for path in sorted((ROOT / "corpus").rglob("*")) if path.suffix in suffixes and path.name != "expected.yaml")
    return [(path.name, path.read_bytes()) for path in paths if path.is_file() and path.stat().st_size < MAX_BYTES // 4]


def make(seed: int) -> Case:
    """The case of a number."""
    draw = random.Random(seed)
    carrier = draw.choice(list(CARRIERS))
    log = mutated(draw, draw.choice(corpus(LOG_SUFFIXES))[1], draw.choice(corpus(LOG_SUFFIXES))[1])
    name, data = draw.choice(corpus(CONFIG_SUFFIXES))
    config = mutated(draw, data, draw.choice(corpus((Path(name).suffix,)))[1])
    case = Case(seed, carrier)
    CARRIERS[carrier](draw, case, log[:MAX_BYTES], (name, config[:MAX_BYTES]))
    return case


# -- what happens to a text


def mutated(draw: random.Random, text: bytes, other: bytes) -> bytes:
    """A text after up to eight changes; one in six stays as it is."""
    for _ in range(draw.choice((0, 1, 1, 2, 4, 8))):
        text = draw.choice(CHANGES)(draw, text, other)
    return text


def splice(draw: random.Random, text: bytes, other: bytes) -> bytes:
    lines, others = text.split(b"\n"), other.split(b"\n")
    at, start = draw.randrange(len(lines) + 1), draw.randrange(len(others))
    return b"\n".join([*lines[:at], *others[start : start + draw.randrange(1, 60)], *lines[at + draw.choice((0, 0, 5)) :]])


def cut(draw: random.Random, text: bytes, _: bytes) -> bytes:
    start, end = sorted((draw.randrange(len(text) + 1), draw.randrange(len(text) + 1)))
    return draw.choice((text[:end], text[start:], text[:start] + text[end:] if end - start < 400 else text[:end]))


def repeat(draw: random.Random, text: bytes, _: bytes) -> bytes:
    lines = text.split(b"\n")
    at = draw.randrange(len(lines))
    block = lines[at : at + draw.randrange(1, 12)]
    times = min(draw.choice((2, 3, 30, 1000)), MAX_BYTES // (sum(map(len, block)) + len(block)) + 1)  # what is cut off is not made
    return b"\n".join([*lines[:at], *block * times, *lines[at:]])[:MAX_BYTES]


def change_number(draw: random.Random, text: bytes, _: bytes) -> bytes:
    places = [at for at in range(len(text)) if text[at : at + 1].isdigit() and not text[at - 1 : at].isdigit()]
    if not places:
        return text
    start = end = draw.choice(places)
    while text[end : end + 1].isdigit() or text[end : end + 1] == b".":
        end += 1
    return text[:start] + draw.choice(VALUES).encode(errors="replace") + text[end:]


def change_value(draw: random.Random, text: bytes, _: bytes) -> bytes:
    """What follows a colon or an equals sign, to the end of the line."""
    lines = text.split(b"\n")
    at = draw.randrange(len(lines))
    for sign in (b": ", b"=", b" "):
        head, found, _tail = lines[at].partition(sign)
        if found:
            lines[at] = head + found + draw.choice(VALUES).encode(errors="replace")
            break
    return b"\n".join(lines)


def insert(draw: random.Random, text: bytes, _: bytes) -> bytes:
    at = draw.randrange(len(text) + 1)
    value = draw.choice(VALUES).encode(errors=draw.choice(("replace", "surrogatepass")))
    return text[:at] + value + text[at:]


def flip(draw: random.Random, text: bytes, _: bytes) -> bytes:
    if not text:
        return text
    at = draw.randrange(len(text))
    return text[:at] + bytes([draw.randrange(256)]) + text[at + 1 :]


def indent(draw: random.Random, text: bytes, _: bytes) -> bytes:
    prefix = draw.choice((b"> ", b"    ", b"\t", b"- ", b"| ", b"[rank3]: ", b"(worker pid=7) ", b"2024-01-01T00:00:00Z ", b"# "))
    lines = text.split(b"\n")
    start = draw.randrange(len(lines))
    return b"\n".join([*lines[:start], *(prefix + line for line in lines[start:])])


def other_line_ends(draw: random.Random, text: bytes, _: bytes) -> bytes:
    return text.replace(b"\n", draw.choice((b"\r\n", b"\r", b"\n\n", b"\\n", b"\x85", b" ", b" \\\n")))


def swap_keys(draw: random.Random, text: bytes, other: bytes) -> bytes:
    """A line of one text beside a line of the other: a key twice, a block under another."""
    lines, others = text.split(b"\n"), other.split(b"\n")
    lines.insert(draw.randrange(len(lines) + 1), draw.choice(others))
    return b"\n".join(lines)


def hostile_value(draw: random.Random, text: bytes, _: bytes) -> bytes:
    """A value made to break readers, where one stands or on a line of its own."""
    changed = hostile_values.placed(draw, text.decode("utf-8", "replace"))
    return changed.encode("utf-8", draw.choice(("replace", "surrogatepass")))


CHANGES: tuple[Callable[[random.Random, bytes, bytes], bytes], ...] = (
    splice, cut, repeat, change_number, change_number, change_value, change_value, insert, insert, flip, indent, other_line_ends, swap_keys,
    hostile_value, hostile_value, hostile_value,
)  # fmt: skip


# -- how it is handed over


def as_files(draw: random.Random, case: Case, log: bytes, config: tuple[str, bytes]) -> None:
    case.logs, case.configs = [log], [config]


def as_config_and_message(draw: random.Random, case: Case, log: bytes, config: tuple[str, bytes]) -> None:
    case.logs, case.configs = [MESSAGE], [config]


def as_one_value(draw: random.Random, case: Case, log: bytes, config: tuple[str, bytes]) -> None:
    """A config that is right but for one value: a reader that stops at an error before it does not hide it."""
    name, data = draw.choice(corpus(CONFIG_SUFFIXES))
    case.logs, case.configs = [MESSAGE], [(name, hostile_value(draw, data, data)[:MAX_BYTES])]


def as_check(draw: random.Random, case: Case, log: bytes, config: tuple[str, bytes]) -> None:
    """A config alone: will it fit?"""
    as_one_value(draw, case, log, config)
    case.logs = []


def as_known_keys(draw: random.Random, case: Case, log: bytes, config: tuple[str, bytes]) -> None:
    """A few keys of one framework, one of them or each with a hostile value, as its command, its file or its call in Python. Keys that are
    read as more than one value, such as a member of an object, come first."""
    table = draw.choice([one for one in rule_files.table("frameworks").values() if keys_of(one)])
    names, detect = keys_of(table), table.get("detect", {})
    structured = keys_of(table, "takes")
    drawn = [*draw.sample(names, min(len(names), 6)), *draw.sample(structured, min(len(structured), 3))]
    values = dict.fromkeys([*drawn, *draw.choice(detect.get("keys") or [[]])], "1")
    for key in draw.choice(([draw.choice(list(values))], [name for name in values if name in structured], list(values))):
        values[key] = draw.choice((hostile_values.value, hostile_values.nested))(draw)[: MAX_BYTES // 8]
    quoted = {name: draw.choice((shlex.quote, json.dumps, str))(text) for name, text in values.items()}
    command = draw.choice(detect.get("commands") or ["train.py"])
    name, text = draw.choice(
        (
            ("a.sh", " ".join([command, *(f"--{name} {text}" for name, text in quoted.items())])),
            ("a.sh", " ".join([command, *(f"{name}={text}" for name, text in quoted.items())])),
            ("a.sh", "".join(f"export {name}={text}\n" for name, text in quoted.items()) + command),
            ("a.yaml", "".join(f"{name}: {text}\n" for name, text in quoted.items())),
            ("a.toml", "".join(f"{name} = {text}\n" for name, text in quoted.items())),
            ("a.json", "{" + ", ".join(f'"{name}": {text}' for name, text in quoted.items()) + "}"),
            ("a.json", json.dumps(values)),
            (
                "a.py",
                f"from {detect.get('imports', 'a')} import *\n{draw.choice(detect.get('classes') or ['f'])}("
                + ", ".join(f"{name}={text}" for name, text in quoted.items())
                + ")\n",
            ),
        )
    )
    case.logs, case.configs = [MESSAGE], [(name, text.encode(errors="surrogatepass"))]
    if draw.random() < 0.3:  # echoed or printed
        case.logs, case.configs = [b"+ " * (name == "a.sh") + case.configs[0][1] + b"\n" + MESSAGE], []


def keys_of(table: object, having: str = "key") -> list[str]:
    """Every key that a framework's table names, or those of entries with this attribute."""
    if isinstance(table, list):
        return [key for item in table for key in keys_of(item, having)]
    if not isinstance(table, dict):
        return []
    own = [table["key"]] if isinstance(table.get("key"), str) and having in table else []
    return own + [key for name, item in table.items() if name not in ("ignored", "detect") for key in keys_of(item, having)]


def as_one_line(draw: random.Random, case: Case, log: bytes, config: tuple[str, bytes]) -> None:
    """A log that is right but for one line or value."""
    whole = draw.choice(corpus(LOG_SUFFIXES))[1]
    case.logs = [hostile_value(draw, whole, whole)[:MAX_BYTES]]


def as_options(draw: random.Random, case: Case, log: bytes, config: tuple[str, bytes]) -> None:
    """Values of `--set` and `--gpu`, and the text of a model's config."""
    name = draw.choice([*rule_files.table("knobs"), *rule_files.table("facts"), "gpu", "model", "model"])
    text = hostile_values.value(draw) if name != "model" else hostile_values.placed(draw, json.dumps(draw.choice(MODELS), indent=1))
    case.logs, case.configs, case.options = [MESSAGE], [draw.choice(corpus((".yaml", ".sh", ".json")))], {name: text}


def as_log(draw: random.Random, case: Case, log: bytes, config: tuple[str, bytes]) -> None:
    case.logs = [log]


def as_page(draw: random.Random, case: Case, log: bytes, config: tuple[str, bytes]) -> None:
    fence = draw.choice((b"```", b"~~~", b"````", b"", b"<pre>", b"{code}"))
    language = draw.choice((b"", b"yaml", b"bash", b"python", b"text", b"shell script"))
    words = draw.choice(
        ("# OOM on 8x40G\n\nI train Qwen2-7B with LoRA, batch size is 1.\n", "### 显存不足\n四张卡，ZeRO-3。\n", "")
    ).encode()
    parts = [words, fence + language, config[1], fence, b"and the log:", fence, log, fence if draw.random() < 0.7 else b""]
    case.logs = [b"\n".join(parts)]


def as_json(draw: random.Random, case: Case, log: bytes, config: tuple[str, bytes]) -> None:
    key = draw.choice(("log", "message", "msg", "text", "line"))
    lines = (json.dumps({key: line, "time": 1}) for line in log.decode("utf-8", "replace").split("\n"))
    case.logs = ["\n".join(lines).encode()[:MAX_BYTES]]


def as_archive(draw: random.Random, case: Case, log: bytes, config: tuple[str, bytes]) -> None:
    kind, out = draw.choice(("gz", "tar", "tgz", "zip")), io.BytesIO()
    if kind == "gz":
        packed = gzip.compress(log, 1)
    elif kind == "zip":
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("run/error.log", log)
            archive.writestr(f"run/{config[0]}", config[1])
        packed = out.getvalue()
    else:
        with tarfile.open(fileobj=out, mode="w:gz" if kind == "tgz" else "w") as tar:
            for name, data in (("run/error.log", log), (f"run/{config[0]}", config[1])):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        packed = out.getvalue()
    case.logs = [packed if draw.random() < 0.6 else mutated(draw, packed, packed)]


def as_utf16(draw: random.Random, case: Case, log: bytes, config: tuple[str, bytes]) -> None:
    codec = draw.choice(("utf-16", "utf-16-le", "utf-8-sig", "gb18030", "latin-1"))
    case.logs = [log.decode("utf-8", "replace").encode(codec, "replace")]
    case.configs = [(config[0], config[1].decode("utf-8", "replace").encode(codec, "replace"))]


def as_two_logs(draw: random.Random, case: Case, log: bytes, config: tuple[str, bytes]) -> None:
    case.logs, case.configs = [log, mutated(draw, log, config[1])], [config, (f"other-{config[0]}", mutated(draw, config[1], log))]


CARRIERS: dict[str, Callable[[random.Random, Case, bytes, tuple[str, bytes]], None]] = {
    "files": as_files, "config": as_config_and_message, "log": as_log, "page": as_page, "json": as_json, "archive": as_archive,
    "encoding": as_utf16, "two logs": as_two_logs, "one value": as_one_value, "one line": as_one_line, "options": as_options,
    "check": as_check, "known keys": as_known_keys,
}  # fmt: skip
