"""How much redaction leaks, and what it masks that is no secret: `python benchmarks/redaction.py [--seed N] [--show]`.

Makes several hundred secrets from a seed (none is real, none stands in this file), writes each as people have it, in YAML, JSON, shell,
Python, a log, a page, a notebook, a command line, a header, an address, and masks that. A secret leaks if six of its characters in a row
are left. Then masks every log and config of corpus/, which hold no secrets: `--show` prints the lines in which one was seen.

The rules were written against seed 1; other seeds make other names, words and values.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import string
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from diagnose import rule_files
from diagnose.render.parts.redaction import Masker

CORPUS = Path(__file__).resolve().parent.parent / "corpus"

#: Characters of a secret that may not be left in a row.
WINDOW = 6

ALPHABETS = {
    "lower": string.ascii_lowercase,
    "upper": string.ascii_uppercase,
    "letter": string.ascii_letters,
    "alnum": string.ascii_letters + string.digits,
    "lnum": string.ascii_lowercase + string.digits,
    "unum": string.ascii_uppercase + "234567",
    "hex": "0123456789abcdef",
    "digit": string.digits,
    "b64": string.ascii_letters + string.digits + "+/",
}

#: Last words of names, with whether people choose such values themselves.
ENDINGS = {
    "key": False,
    "token": False,
    "secret": False,
    "pass": True,
    "passphrase": True,
    "password": True,
    "credential": False,
    "credentials": False,
    "auth": False,
    "cookie": False,
    "dsn": False,
    "api_key": False,
    "access_token": False,
    "passwd": True,
    "pwd": True,
}

#: Words before the last one: services, what people call their own things, nothing.
FRONTS = (
    "wandb",
    "hf",
    "azure_openai",
    "db",
    "redis",
    "smtp",
    "aws_secret_access",
    "client",
    "my",
    "acme",
    "zephyr_prod",
    "team7",
    "internal",
    "grafana",
    "ldap",
    "proxy",
    "",
    "train_bucket",
    "mlflow_tracking",
    "vpn",
)

#: Pieces of passwords as people choose them.
SYLLABLES = ("tram", "kop", "pel", "zug", "win", "ter", "blau", "fen", "mor", "gat", "sil", "dra", "quo", "nim", "bar", "ost")


#: The kind of secrets that no rule promises to see.
UNMARKED = "in a sentence"


class Sample(NamedTuple):
    """A secret in its surroundings."""

    kind: str
    carrier: str
    text: str
    secret: str


class Maker:
    """Makes values, names and secrets from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def expand(self, template: str) -> str:
        """An example of rules/redactions.yaml with its {alphabet:length} filled in."""
        return re.sub(r"\{(\w+):(\d+)\}", lambda hole: self.text(hole[1], int(hole[2])), template)

    def text(self, alphabet: str, length: int) -> str:
        return "".join(self.random.choices(ALPHABETS[alphabet], k=length))

    def value(self) -> str:
        """A generated secret."""
        form = self.random.choice(["{hex:32}", "{hex:40}", "{hex:64}", "{alnum:20}", "{alnum:32}", "{alnum:43}", "{b64:40}", "{lnum:24}"])
        return self.expand(self.random.choice([form, form, form, "{hex:8}-{hex:4}-{hex:4}-{hex:4}-{hex:12}"]))

    def password(self) -> str:
        """A secret that somebody chose."""
        first, second, third = self.random.sample(SYLLABLES, 3)
        number = self.random.randrange(10, 9999)
        sign = self.random.choice("!@#%^*_-+=.")
        return self.random.choice(
            [
                f"{first}{second}{number}",
                f"{first.title()}{sign}{second}{third}{number}",
                f"{first}{second}-{third}-{second}",
                f"{first}{sign}{number}{second}",
            ]
        )

    def name(self, ending: str) -> str:
        """A name that ends so, as YAML, a shell, Java, a header or somebody in a hurry writes it."""
        front = self.random.choice(FRONTS)
        words = [*front.split("_"), *ending.split("_")] if front else ending.split("_")
        style = self.random.choice(["snake", "snake", "upper", "kebab", "camel", "dotted", "title"])
        if style == "camel":
            return words[0] + "".join(word.title() for word in words[1:])
        joint = {"kebab": "-", "dotted": ".", "title": "-"}.get(style, "_")
        name = joint.join(words)
        return {"upper": name.upper(), "title": "-".join(word.title() for word in words)}.get(style, name)


def quoted_page(line: str) -> str:
    return f"### My config\n\nI ran this on 8 x A100:\n\n```\n{line}\n```\n\nand got CUDA out of memory."


def in_notebook(line: str) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": ["import torch\n", line + "\n"]}]}, indent=1)


def identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)


#: How a setting is written: the carrier, and a function of name and value.
SETTINGS: dict[str, Callable[[str, str], str]] = {
    "YAML": lambda name, value: f"model: llama\ntrain:\n  {name}: {value}\n  batch: 4",
    "YAML, quoted": lambda name, value: f"  {name}: '{value}'  # mine",
    "JSON": lambda name, value: json.dumps({"model": "llama", name: value, "batch": 4}),
    "JSON, indented": lambda name, value: json.dumps({"batch": 4, "report": {name: value}}, indent=2),
    "TOML": lambda name, value: f'[tracking]\n{name} = "{value}"\nbatch = 4',
    "INI": lambda name, value: f"[tracking]\n{name} = {value}\nbatch = 4",
    "shell": lambda name, value: f"export {identifier(name).upper()}={value}\ntorchrun train.py",
    "shell, before a command": lambda name, value: f"{identifier(name).upper()}='{value}' python train.py --batch 4",
    "Dockerfile": lambda name, value: f"ENV {identifier(name).upper()} {value}",
    "Kubernetes": lambda name, value: f'env:\n  - name: {identifier(name).upper()}\n    value: "{value}"',
    "Python, argument": lambda name, value: f'run = init(project="p", {identifier(name)}="{value}", batch=4)',
    "Python, dictionary": lambda name, value: f"config = {{'batch': 4, '{name}': '{value}', 'lr': 1e-5}}",
    "Python, environment": lambda name, value: f'os.environ["{identifier(name).upper()}"] = "{value}"',
    "Python, argparse": lambda name, value: f'parser.add_argument("--{identifier(name)}", type=str, default="{value}")',
    "printed settings": lambda name, value: f"Namespace(batch=4, {identifier(name)}='{value}', lr=1e-05)",
    "printed, Megatron": lambda name, value: f"  {identifier(name)} {'.' * 20} {value}",
    "log": lambda name, value: f"2024-05-01 10:00:01,123 - INFO - [rank0]: {name}={value}, batch=4",
    "log, sentence": lambda name, value: f"[rank3]: connecting with {name}: {value}",
    "log, JSON": lambda name, value: json.dumps({"level": "info", "message": f'{name}: "{value}"'}),
    "page": lambda name, value: quoted_page(f"{name}: {value}"),
    "page, table": lambda name, value: f"| setting | value |\n|---|---|\n| `{name}` | `{value}` |\n| batch | 4 |",
    "page, numbered": lambda name, value: f"   11 | batch: 4\n>  12 | {name}: {value}\n   13 | lr: 1e-5",
    "page, difference": lambda name, value: f"-{name}: {value}\n+{name}: changed",
    "notebook": lambda name, value: in_notebook(f'client = Client({identifier(name)}="{value}")'),
    "notebook, magic": lambda name, value: in_notebook(f"%env {identifier(name).upper()}={value}"),
    "option": lambda name, value: f"python train.py --batch 4 --{name.replace('_', '-')} {value} --lr 1e-5",
    "option with =": lambda name, value: f"python train.py --{name}={value} --lr 1e-5",
    "option, listed": lambda name, value: f"['python', 'train.py', '--{name}', '{value}', '--lr', '1e-5']",
    "header": lambda name, value: f"> X-{name.replace('_', '-').title()}: {value}\n> Accept: */*",
    "header, curl": lambda name, value: f"curl -H '{name}: {value}' https://example.org/v1/models",
    "address": lambda name, value: f"GET https://example.org/v1/runs?project=p&{identifier(name)}={value}&page=2",
}

#: How anything else stands: a token without a name, a command, a key of several lines.
SURROUNDINGS: dict[str, Callable[[str], str]] = {
    "log": lambda text: f"2024-05-01 10:00:01 INFO [rank0]: {text}",
    "page": quoted_page,
    "page, prose": lambda text: f"It fails after `{text}`, see above.",
    "notebook": lambda text: in_notebook("!" + text),
    "shell": lambda text: f"set -e\n{text} && torchrun train.py",
    "YAML, comment": lambda text: f"batch: 4  # {text}\nlr: 1e-5",
    "Python, text": lambda text: f'subprocess.run("""{text}""", shell=True)',
    "numbered": lambda text: f"   12 | {text}",
}


def samples(seed: int) -> list[Sample]:
    """The secrets of a seed, each in its surroundings."""
    maker = Maker(seed)
    return [*_settings(maker), *_service_tokens(maker), *_commands(maker), *_keys(maker), *_addresses(maker), *_unmarked(maker)]


def _settings(maker: Maker) -> Iterator[Sample]:
    for carrier, write in SETTINGS.items():
        for ending, is_chosen in ENDINGS.items():
            secret = maker.password() if is_chosen and maker.random.random() < 0.7 else maker.value()
            yield Sample(f"name in {ending}", carrier, write(maker.name(ending), secret), secret)


def _service_tokens(maker: Maker) -> Iterator[Sample]:
    """The tokens of the rows whose examples are nothing but one."""
    for row in rule_files.table("redactions"):
        if row["mask"] in ("token", "webhook"):
            for template in row["masks"]:
                text = maker.expand(template)
                secret = max(re.findall(r"[\w+-]+", text), key=len)
                carrier = maker.random.choice(list(SURROUNDINGS))
                yield Sample(f"service: {row['name']}", carrier, SURROUNDINGS[carrier](text), secret)


#: Commands and calls; * is where the secret stands.
COMMANDS = (
    "wandb.login(key='*')",
    "wandb.login('*')",
    "huggingface_hub.login(token='*')",
    "login('*')",
    "openai.api_key = '*'",
    "curl -u alice:* https://example.org",
    "curl -sSL --user 'alice:*' https://example.org/x",
    "wandb login -k *",
    "wandb login *",
    "wandb login --relogin *",
    "sshpass -p * ssh a@b hostname",
    "sshpass -p '*' rsync a b",
    "docker login -u alice -p * registry.example.org",
    "docker login --password=* -u alice",
    "docker login registry.example.org --username alice --password *",
    "mysql -u root -p* runs",
    "mysql -h db -uroot -p'*' -e 'select 1'",
    "huggingface-cli login --token *",
    "redis-cli -h cache -a * ping",
    "ldapsearch -x -D cn=admin -w * -b dc=x",
    "oc login --token=* https://example.org",
    "git clone https://alice:*@example.org/a.git",
    "git clone https://oauth2:*@example.org/a.git",
    "git clone https://*@example.org/b.git",
    "requests.get(url, auth=('alice', '*'))",
    "requests.get(url, headers={'Authorization': 'Bearer *'})",
    "psql postgresql://alice:*@db:5432/runs",
    "echo machine api.example.org login user password *",
    "aws configure set aws_secret_access_key *",
    "os.environ.setdefault('WANDB_API_KEY', '*')",
    "os.getenv('HF_TOKEN', '*')",
    "HfApi(token='*')",
    "Login(api_key=SecretStr('*'))",
    "openssl rsa -passin pass:* -in k.pem",
    "unzip -P * data.zip",
    "def load(path, token: str = '*'):",
    "gpg --batch --passphrase * -d x.gpg",
    "Cookie: session=*; theme=dark",
    "Set-Cookie: sid=*; HttpOnly",
    "Authorization: Basic *",
    "Proxy-Authorization: Basic *",
    "Authorization: Token *",
    "redis://:*@cache:6379/0",
    "amqp://guest:*@mq:5672",
    "wandb: Paste an API key from your profile and hit enter: *",
    "mongosh -u alice -p * runs",
    "setenv WANDB_API_KEY *",
    "$env:HF_TOKEN = '*'",
    "set -gx HF_TOKEN *",
)
CHOSEN = re.compile(r"curl|sshpass|docker|mysql|redis|ldap|alice:|auth=\(|machine|passin|unzip|passphrase|amqp|mongosh")


def _commands(maker: Maker) -> Iterator[Sample]:
    for command in COMMANDS:
        for carrier in maker.random.sample(list(SURROUNDINGS), 2):
            secret = maker.expand("{alnum:14}") if CHOSEN.search(command) else maker.value().replace("/", "a").replace("+", "b")
            text = command.replace("*", secret)
            text = text.replace('"', "'") if carrier == "Python, text" else text
            yield Sample("command or call", carrier, SURROUNDINGS[carrier](text), secret)


def _keys(maker: Maker) -> Iterator[Sample]:
    """PEM blocks in every form, AWS pairs."""
    for title in (
        "RSA PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "PRIVATE KEY",
        "EC PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ):
        body = "\n".join(maker.text("b64", 64) for _ in range(6)) + "\n" + maker.text("b64", 30) + "=="
        extra = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A0B\n\n" if title.startswith("RSA") else ""
        block = f"-----BEGIN {title}-----\n{extra}{body}\n-----END {title}-----"
        for carrier, text in {
            "file": block,
            "YAML": "tls_key: |\n" + re.sub("(?m)^", "  ", block),
            "JSON": json.dumps({"type": "service_account", "private_key": block + "\n"}),
            "log": re.sub("(?m)^", "2024-05-01 10:00:01 [rank0]: ", block),
            "cut off": block[: len(block) * 2 // 3],
        }.items():
            for line in body.split("\n")[:3]:
                yield Sample("PEM block", carrier, text, line)
    for joint in (":", ",", " ", "\naws_secret_access_key = ", "\nexport AWS_SECRET_ACCESS_KEY="):
        secret = maker.text("b64", 40)
        yield Sample("AWS pair", "log", f"credentials {maker.expand('AKIA{unum:16}')}{joint}{secret}", secret)


def _addresses(maker: Maker) -> Iterator[Sample]:
    for scheme in ("https", "postgresql", "mysql", "mongodb+srv", "redis", "s3", "socks5"):
        secret = maker.password().replace("@", "-").replace("#", "-")
        yield Sample("address with password", "address", f"dsn={scheme}://alice:{secret}@db.example.org/runs", secret)


#: Sentences in which nothing but their sense says that * is a secret.
SENTENCES = (
    "log in as alice / *",
    "credentials alice:*",
    "net use Z: \\\\server\\share /user:alice *",
    "I always use * everywhere",
    "the passcode that works is, I think, *",
)


def _unmarked(maker: Maker) -> Iterator[Sample]:
    for sentence in SENTENCES:
        for carrier in ("log", "page"):
            secret = maker.password()
            yield Sample(UNMARKED, carrier, SURROUNDINGS[carrier](sentence.replace("*", secret)), secret)


def leaks(sample: Sample, masked: str) -> bool:
    """Whether six characters of the secret in a row, or all of a shorter one, are left."""
    width = min(WINDOW, len(sample.secret))
    return any(sample.secret[start : start + width] in masked for start in range(len(sample.secret) - width + 1))


def leaked(seed: int) -> tuple[list[Sample], list[Sample]]:
    """The secrets of a seed, and those that leak."""
    made = samples(seed)
    return made, [sample for sample in made if leaks(sample, Masker()(sample.text))]


def corpus_texts() -> Iterator[tuple[str, str]]:
    """Every text of corpus/ with its place."""
    for path in sorted(CORPUS.rglob("*")):
        if path.is_file() and b"\0" not in (content := path.read_bytes())[:4096]:
            yield str(path.relative_to(CORPUS)), content.decode("utf-8", "replace")


def changed_lines() -> Iterator[tuple[str, str, str]]:
    """The lines of corpus/ that are masked: place, as they were, as they are."""
    for place, text in corpus_texts():
        masked = Masker()(text)
        if masked != text:
            for number, (before, after) in enumerate(zip(text.split("\n"), masked.split("\n"), strict=True), 1):
                if before != after:
                    yield f"{place}:{number}", before, after


def placeholders(line: str) -> set[str]:
    """The kinds of placeholders in a line."""
    return set(re.findall(r"<([a-z]+)-\d+>", line))


#: Placeholders of people and machines, which logs of corpus/ name; the others are secrets, of which it has none.
NAMES = frozenset({"user", "host", "ip", "mac", "email"})


def main(seed: int, show: bool) -> int:
    made, lost = leaked(seed)
    marked = sum(sample.kind != UNMARKED for sample in lost)
    print(f"{len(made)} secrets (seed {seed}), {len(lost)} leak ({len(lost) / len(made):.1%}), {marked} of the kinds that are promised")
    for title, part in (("kind", "kind"), ("carrier", "carrier")):
        total, bad = Counter(getattr(sample, part) for sample in made), Counter(getattr(sample, part) for sample in lost)
        print(f"\nby {title}")
        for name, count in sorted(total.items()):
            print(f"  {name:<26}{bad[name]:>4} of {count:>3}")
    lines = list(changed_lines())
    secrets = [line for line in lines if placeholders(line[2]) - NAMES]
    kinds = Counter(kind for _, _, after in lines for kind in placeholders(after))
    total_lines = sum(text.count("\n") + 1 for _, text in corpus_texts())
    print(f"\ncorpus: {total_lines} lines, {len(lines)} masked ({', '.join(f'{kind} {count}' for kind, count in sorted(kinds.items()))})")
    print(f"corpus: {len(secrets)} lines in which a secret is seen (it holds none)")
    if show:
        for sample in lost:
            print(f"\nLEAK {sample.kind} / {sample.carrier}\n{sample.text}\n-> {Masker()(sample.text)}")
        for place, before, after in lines:
            print(f"\n{place}\n  {before.strip()[:200]}\n  {after.strip()[:200]}")
    text = "\n".join(text for _, text in corpus_texts())[:1_000_000]
    start = time.process_time()
    Masker()(text)
    print(f"corpus: its first {len(text) / 1e6:.1f} MB as one text take {time.process_time() - start:.2f} s")
    return 1 if secrets or marked else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print what leaks and the lines of corpus/ that are masked")
    arguments = parser.parse_args()
    sys.exit(main(arguments.seed, arguments.show))
