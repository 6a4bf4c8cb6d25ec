"""Values made to break readers, by mechanism: nested in each syntax that anything here reads, absurd numbers, odd characters, long tokens,
keys and names that come again; and the places where values stand in configs, commands and logs."""

from __future__ import annotations

import json
import random
import re
import shlex

#: The most characters of one value.
MAX_CHARACTERS = 120_000

#: One level of each syntax that nests, by what reads it: what opens it, the innermost value, what closes it.
LEVELS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "json": (('{"a":', "1", "}"), ("[", "1", "]"), ('[{"a":', "1", "}]")),
    "yaml": (
        ("{a: ", "1", "}"), ("- ", "1", ""), ("? ", "1", ""), ("!a ", "1", ""), ("&a [", "1", "]"), ("a: ", "1", ""), ("[[*a, ", "1", "]]"),
    ),
    "toml": (("{a = ", "1", "}"), ("a.", "b", " = 1"), ("[a.", "b", "]"), ('"a".', "b", "")),
    "python": (
        ("(", "1", ",)"), ("dict(a=", "1", ")"), ("-", "1", ""), ("not ", "x", ""), ("lambda: ", "1", ""), ("1 + ", "1", ""),
        ("1 ** ", "1", ""), ("", "x", ".a"), ("", "x", "[0]"), ("", "x", "()"), ("'a' ", "'b'", ""), ('f"{', "x", '}"'),
        ("a if b else ", "c", ""), ("a = ", "1", ""), ("[a for a in ", "b", "]"), ("{**", "a", "}"), ("f(*", "a", ")"), ("a or ", "b", ""),
        ("a < ", "b", ""), ("await ", "a", ""), ("{1: ", "1", "}"), ("{", "1", "}"), ("Namespace(a=", "1", ")"), ("array([", "1", "])"),
        ("OrderedDict([('a', ", "1", ")])"), ("<Enum.a: ", "1", ">"), ("Config(\n a=", "1", "\n)"), ("PosixPath('", "a", "')"),
        ("Sequential(\n(0): ", "Linear()", "\n)"),
    ),
    "hydra": (("{a:", "1", "}"), ("sort(", "1", ")"), ("a@b:", "1", ""), ("+", "a=1", ""), ("~", "a", ""), ("a=", "1", "")),
    "interpolation": (("${", "a", "}"), ("${oc.env:A,", "1", "}"), ("${{", "a", "}}"), ("{{ ", "a", " }}"), ("%(", "a", ")s")),
    "shell": (
        ("{a,", "b", "}"), ("{1..9}", "", ""), ("$(echo ", "x", ")"), ('"$(', "x", ')"'), ("${a:-", "x", "}"), ("$((", "1", "))"),
        ("<(", "x", ")"), ("( ", "x", " )"), ("{ ", "x", "; }"), ("if true; then ", "x", "; fi"), ("for i in a; do ", "x", "; done"),
        ("while a; do ", "x", "; done"), ("case a in a) ", "x", ";; esac"), ("f() { ", "x", "; }"), ("$a", "", ""), ("a=1 ", "x", ""),
        ("\\", "a", ""), ("`", "a", "`"), ("'", "a", "'"), ("! ", "x", ""), ("cat <<A | ", "x", ""), ("a && ", "b", ""), ("a | ", "b", ""),
        ("x \\\n", "y", ""), ("--a ", "1", ""),
    ),
    "commands": (
        ("env ", "a.py", ""), ("nohup ", "a.py", ""), ("srun ", "a.py", ""), ("torchrun ", "a.py", ""), ("accelerate launch ", "a.py", ""),
        ("bash -c ", "a", ""), ("eval ", "a", ""), ("python -m torch.distributed.run ", "a.py", ""), ("timeout 1 ", "a", ""),
        ("xargs ", "a", ""), ("deepspeed ", "a.py", ""), ("ssh a ", "b", ""), ("docker run a ", "b", ""), ("sudo ", "a", ""),
        ("exec ", "a", ""),
    ),
    "page": (
        ("> ", "x", ""), ("<details>", "x", "</details>"), ("<pre>", "x", "</pre>"), ("<code>", "x", "</code>"), ("&amp;", "lt;", ""),
        ("```\n", "x", "\n```"), ("**", "x", "**"), ("[", "x", "](a)"), ("| ", "x", " |"), ("# ", "x", ""), ("* ", "x", ""),
    ),
    "log": (
        ("[rank0]: ", "x", ""), ("(a pid=1) ", "x", ""), ("2024-01-01 00:00:00 ", "x", ""), ("INFO:", "x", ""), ("\x1b[0m", "x", ""),
        ("0: ", "x", ""), ('  File "a.py", line 1, in f\n', "x", ""), ("Error: ", "x", ""), ("a.b.", "Error", ""), ("Caused by: ", "x", ""),
        ("step 1 ", "x", ""),
    ),
}  # fmt: skip
DEPTHS = (2, 30, 90, 300, 1_000, 3_000, 30_000)

NUMBERS = (
    "0", "-0", "-1", "1e9", "1e18", "1e308", "1e309", "1e999999999", "1e-999999999", "9" * 20, "9" * 400, "9" * 5_000, "-" + "9" * 400,
    "0x" + "f" * 300, "0b1" + "0" * 2_000, "0o777", "1_000", "1__0", "_1", "1,000,000", "1.000.000", "1.5.2", ".", "..5", "5.", "+5", "++5",
    "nan", "NaN", "-inf", "Infinity", ".inf", ".nan", "٣", "²", "½", "Ⅷ", "１２", "1k", "1KiB", "1e3GiB", "9" * 30 + "GiB", "1e400MB",
    "50%", "1e400%",
    "1:30:00", "99999999999-99:99:99", "2**31", "2**99999", "1<<99", "10**10**10", "1/0", "1//0", "0.1" + "0" * 3_000 + "1", "4294967296",
    "1j",
    "18446744073709551616", "1e5", "1E5", "on", "no", "~", "null", "True", "--1",
)  # fmt: skip
CHARACTERS = (
    "\x85", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r", "\r\r\n", "\n", "\t", "\0", "\x07", "\x1b[2J", "\x1b]0;a\x07",
    "\x9b", "\x7f", "\ufeff", "\ufffe", "\ufffd", "\ud800", "\udc80", "\udfff", "\ud83d", "\u202e", "\u2066", "\u200f", "\u061c", "\u200b",
    "\u200d", "\xad", "\xa0", "\u3000", "\u2009", "e\u0301", "e" + "\u0301" * 500, "İ", "ı", "ß", "ﬁ", "Ⅻ", "K", "ſ", "א", "ع", "训练",
    "，", "：",
    "＝", "“a”", "‘a’", "—", "−", "–", "\U0001f600", "\U000e0001", "\U0010ffff", "\\ud800", "\\x00", "\\u0000", "\\N{BULLET}", "%00",
    "&#0;", "&#xD800;",
)  # fmt: skip
TOKENS = (
    "a", "A", "0", "_", "-", ".", "/", ":", ",", "=", "$", "\\", "'", '"', "%", "é", "训", " ", "a ", "a,", "a.", "a/", "--a ", "a=b ",
    "1e", "a:", "a: ", "../",
)  # fmt: skip
NAMES = (
    "a",
    "model",
    "train",
    "max_length",
    "bf16",
    "zero_optimization",
    "per_device_train_batch_size",
    "__class__",
    "",
    "a b",
    "a.b",
    "0",
    "-",
)

#: Where a value stands in a line of a log, a config, a script or a page.
LINES = (
    "{v}", "{k}: {v}", "{k}={v}", "{k} = {v}", "  {k}: {v}", "- {v}", '"{k}": {v},', "'{k}': {v},", "--{k} {v}", "--{k}={v} \\", "{v}: 1",
    "{v}=1",
    "--{v} 1", "[{v}]", "{{{v}: 1}}", "? {v}", "{k}: &{k} {v}", "<<: {v}", "# {v}", "// {v}", "{v} \\", "!!{v}", "%{v}", "@{v}",
    "export {k}={v}", "{k}=({v})", "{k}+=({v})", "for {k} in {v}; do", "if [ {v} ]; then", "case {v} in", "cat <<{v}", "source {v}",
    "set -- {v}",
    "function {k}() {{ {v}", "alias {k}={v}", "declare -A {k}={v}", "#SBATCH --gres={v}", "#SBATCH --{k}={v}",
    "srun --gres=gpu:{v} python a.py",
    "torchrun --nproc_per_node {v} train.py --{k} {v}", "torchrun train.py --override {v}", "torchrun train.py --override '{v}'",
    "python train.py {k}={v}", "python train.py '{k}={v}'", "python train.py +{k}={v} ++{k}.{k}={v}", "python -c {v}",
    "{v} train.py --{k} 1",
    "deepspeed --include {v} train.py --deepspeed {v}", "deepspeed train.py --deepspeed_config '{v}'",
    "accelerate launch --config_file {v} {v}",
    "llamafactory-cli train {v}", "vllm serve {v} --{k} {v}", "vllm serve a --hf-overrides '{v}'", "CUDA_VISIBLE_DEVICES={v} python a.py",
    "PYTORCH_CUDA_ALLOC_CONF={v} python a.py", "docker run --gpus {v} --shm-size {v} a", "kubectl run a --limits={v}",
    "+ torchrun train.py --{k} {v}",
    "import {v}", "from {v} import {v}", "{k} = {v}  # type: ignore", "f({v})", "SFTConfig({k}={v})", "TrainingArguments(**{v})",
    "def {k}({v}):",
    "parser.add_argument('--{k}', default={v})", "class {k}({v}):", "@dataclass\nclass A:\n    {k}: int = {v}",
    "AutoModel.from_pretrained({v})",
    "Namespace({k}={v})", "{k} .......... {v}", "args: {v}", "INFO config: {v}", "Training arguments: {v}", "ds_config = {v}", "json = {v}",
    "{{'loss': {v}, 'epoch': {v}}}", "| {k} | {v} |", "{k}\t{v}", "  {k} {v}", "***** {v} *****", "  Num examples = {v}",
    "100%|{v}| 3/{v} [00:01<{v}]",
    'File "{v}", line {v}, in {v}', '  File "/a/torch/{v}.py", line 3, in {v}\n    {v}', "{v}Error: {v}", "{v}: CUDA out of memory. {v}",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {v} GiB. GPU {v} has a total capacity of {v} GiB of which {v} is free.",
    "RuntimeError: CUDA error: {v}", "RESOURCE_EXHAUSTED: Out of memory allocating {v} bytes.", "slurmstepd: error: {v}", "Killed {v}",
    "[{v}] {v}",
    "Out of memory: Killed process {v} ({v}) total-vm:{v}kB, anon-rss:{v}kB", "torch=={v}", "transformers version: {v}",
    "Loading {v} from {v}",
    "I use `{v}` with `{k}: {v}` on {v} GPUs.", "```{v}", "<{v}>", "| {v} ", "> {v}", "&{v};", "http://{v}",
    "({k}): Linear(in_features={v}, out_features={v})",
    '{{"log": "{v}"}}', '{{"{k}": {v}, "{k}": {v}}}', "{k}: |\n  {v}\n {v}", "{k}: >-\n{v}", '{k} = """{v}', "{k}: !!binary {v}",
    "{k} = [\n{v},\n{v}\n]",
)  # fmt: skip


def value(draw: random.Random) -> str:
    """A hostile value of one of the mechanisms."""
    return draw.choice((nested, nested, nested, number, character, token, repeated, escaped))(draw)[:MAX_CHARACTERS]


def nested(draw: random.Random) -> str:
    """One or two syntaxes, one level in another, closed or cut off."""
    levels = [draw.choice(LEVELS[draw.choice(list(LEVELS))]) for _ in range(draw.choice((1, 1, 1, 2)))]
    depth = min(draw.choice(DEPTHS), MAX_CHARACTERS // sum(len(opening) + len(closing) for opening, _, closing in levels))
    start, end = "".join(level[0] for level in levels), "".join(level[2] for level in reversed(levels))
    return start * depth + levels[-1][1] + end * (depth if draw.random() < 0.8 else draw.randrange(depth + 1))


def number(draw: random.Random) -> str:
    return draw.choice(NUMBERS)


def character(draw: random.Random) -> str:
    sign = draw.choice(CHARACTERS)
    return draw.choice((sign, f"a{sign}b", sign * draw.choice((2, 50, 9_000)), f"{sign}{number(draw)}", f"{number(draw)}{sign}"))


def token(draw: random.Random) -> str:
    """A word too long for anything; of words that people write, too."""
    word = draw.choice(TOKENS)
    return word * (draw.choice((300, 5_000, 60_000)) // len(word))


def repeated(draw: random.Random) -> str:
    """Keys that come again, names that stand for themselves or for more and more."""
    many = draw.choice((3, 40, 1_500))
    return draw.choice(
        (
            "{" + ", ".join(f'"a": {at}' for at in range(many)) + "}",
            "{" + ", ".join(f"a: {at}" for at in range(many)) + "}",
            "\n".join("a: 1" for _ in range(many)),
            "&a {a: *a, <<: *a}",
            "[&a [x, x], " + ", ".join(f"&a{at} [*a{at - 1 if at else ''}, *a{at - 1 if at else ''}]" for at in range(min(many, 40))) + "]",
            "{<<: [" + ", ".join("{a: 1}" for _ in range(many)) + "]}",
            " ".join(f"*a{at}" for at in range(many)),
            "".join(f"\na{at}=$a{at - 1}$a{at - 1}" for at in range(min(many, 60))),
            "".join(f"\na{at} = [a{at - 1}, a{at - 1}]" for at in range(min(many, 60))),
            "".join(f"\na{at} = ${{a{at + 1}}}${{a{at + 1}}}" for at in range(min(many, 60))),
            " ".join(f"--a {at}" for at in range(many)),
            " ".join(f"a.b.c{at}=1" for at in range(many)),
            "".join(f"\n[a]\nb = {at}" for at in range(many)),
        )
    )


def escaped(draw: random.Random) -> str:
    """A text in a text in a text, each time with its signs escaped anew."""
    quote = draw.choice((json.dumps, shlex.quote, repr))
    prefix = draw.choice(("", "", "bash -c ", "eval ", "python -c ", "echo "))
    text = draw.choice(('{"a": 1}', "a b", "it's", '"', "\\", "$a", "\x85"))
    while len(text) < draw.choice((50, 3_000, 30_000)):
        text = prefix + quote(text)
        if draw.random() < 0.02:
            break
    return text


def line(draw: random.Random) -> str:
    """A line with a hostile value where one is expected, quoted or not."""
    chosen = value(draw)
    if draw.random() < 0.4:
        chosen = draw.choice((json.dumps, shlex.quote, repr, "'{}'".format, '"{}"'.format))(chosen)
    return draw.choice(LINES).format(k=draw.choice(NAMES), v=chosen[:MAX_CHARACTERS])


#: A key and its value in any syntax.
ASSIGNED = re.compile(
    r"""(?P<head>(?:^|(?<=[\s{,(]))["']?-{0,2}[\w./-]+["']?\s*(?:[:=]|(?<=\w)\s)\s*)(?P<value>"[^"\n]*"|'[^'\n]*'|[^\s,{}()]+)""",
    re.MULTILINE,
)


def placed(draw: random.Random, text: str) -> str:
    """The text with one value of its own replaced, its quotes kept or not, or with a line more."""
    found = list(ASSIGNED.finditer(text[:200_000]))
    if not found or draw.random() < 0.35:
        at = draw.choice([0, len(text), *(match.end() for match in re.finditer("\n", text[:200_000]))])
        return f"{text[:at]}{line(draw)}\n{text[at:]}"
    match = draw.choice(found)
    old, new = match["value"], value(draw)
    if old[0] in "\"'" and draw.random() < 0.6:
        new = draw.choice((f"{old[0]}{new}{old[0]}", json.dumps(new), shlex.quote(new), repr(new)))
    return text[: match.start("value")] + new + text[match.end("value") :]
