"""Feed configurations to the own parser of one release of a framework, in a process of its own.

    python drivers.py DRIVER ENTRIES ROOT [BESIDE...] < requests > answers

Each line of the requests is a JSON object: `entry` and `argv`, `config` or `keywords` (of the class that `entry` names). Each answer
says what the parser refuses (`error`) or what it made of it (`values`). ENTRIES: packages.yaml's entries of the framework, as JSON.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import importlib.metadata
import inspect
import io
import json
import logging
import os
import re
import sys
import tempfile
import tomllib
import traceback
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from edits import stand_ins
from edits.declared import Trees
from edits.stand_ins import install, shallow

#: Begins the error of a request that the parser could not be asked.
UNJUDGED = "not judged: "

Values = dict[str, str]
Request = Mapping[str, Any]


class Unjudged(Exception):
    """The release lacks this entry point, or a stand-in is not enough for it."""


@dataclass
class Framework:
    """One release: where it lies, and its entry points."""

    root: Path
    beside: Sequence[Path]
    entries: Mapping[str, Mapping[str, Any]]
    needed: Mapping[str, Any]  # what it insists on and an excerpt of a file may lack

    def loaded(self, name: str) -> Any:
        """A class by its name: as the package offers it, else imported from the file that defines it."""
        with contextlib.suppress(Exception):
            offered = getattr(importlib.import_module(self.root.name.rpartition("-")[0].replace("-", "_")), name)
            if is_dataclass(offered):
                return offered
        place = Trees([self.root, *self.beside]).find(name)
        if place is None:
            raise Unjudged(name)
        return getattr(self.module(place[0]), name.rpartition(":")[2])

    def module(self, path: Path) -> types.ModuleType:
        for root in (self.root / "src", self.root, *self.beside):
            if path.is_relative_to(root):
                return importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"))
        raise Unjudged(path)


def values(*parsed: Any) -> Values:
    """What was parsed, flat, as text."""
    found: Values = {}

    def put(prefix: str, value: Any) -> None:
        if is_dataclass(value) and not isinstance(value, type):
            for one in fields(value):
                put(f"{prefix}{one.name}.", getattr(value, one.name, None))
        elif isinstance(value, Mapping):
            for name, inner in value.items():
                put(f"{prefix}{name}.", inner)
        elif isinstance(value, (argparse.Namespace, types.SimpleNamespace)):
            put(prefix, vars(value))
        else:
            found[prefix.rstrip(".")] = re.sub(r" at 0x[0-9a-f]+|\d\d[-:]\d\d[-:]\d\d\S*|\w{3}\d\d_", "", repr(value))[:2000]

    for one in parsed:
        put("", one)
    return found


class ErrorParser:
    """argparse that raises what it would print before it exits."""

    @staticmethod
    def install() -> None:
        def error(self: argparse.ArgumentParser, message: str) -> None:
            raise ValueError(message)

        argparse.ArgumentParser.error = error  # type: ignore[method-assign,assignment]


# -- transformers and what builds on its dataclasses


def prepare_transformers() -> None:
    """Let a machine without cards parse what is for cards: precisions are supported, the device is the processor."""
    import torch  # type: ignore[import-not-found]

    module: Any = importlib.import_module("transformers.training_args")
    for name in vars(module).copy():
        if re.match(r"is_torch_(bf16|tf32)_\w+|is_(torch_)?bf16\w*", name):
            setattr(module, name, lambda *_: True)
    for owner in (module.TrainingArguments,):
        owner._setup_devices = property(lambda _: torch.device("cpu"))  # noqa: SLF001
        owner._n_gpu = 1  # noqa: SLF001
        owner.distributed_state = None
        owner.n_gpu = property(lambda _: 1)
        owner.world_size = property(lambda _: 8)
        owner.parallel_mode = property(lambda _: module.ParallelMode.DISTRIBUTED)
        owner.place_model_on_device = property(lambda _: True)


def of_dataclasses(framework: Framework, *, bare: bool = False) -> Callable[[Request], Values]:
    """HfArgumentParser over the classes of an entry point. `bare`: without what they do after parsing, which loads the model."""
    prepare_transformers()
    from omegaconf import OmegaConf  # type: ignore[import-not-found]
    from transformers import HfArgumentParser  # type: ignore[import-not-found]

    def bared(one: Any) -> Any:
        return dataclass(type(one.__name__, (one,), {"__post_init__": lambda _: None, "__module__": one.__module__})) if bare else one

    def parse(request: Request) -> Values:
        if "script" in request:
            return of_own_script(request)
        names = framework.entries[request["entry"]]["classes"]
        classes = []
        for name in names:
            with contextlib.suppress(Unjudged):
                classes.append(bared(framework.loaded(name)))
        if not classes:
            raise Unjudged(str(names))
        words = request.get("argv") or [""]
        if re.search(r"\.(ya?ml|json)$", words[0]):  # a file and overrides of its keys
            request = {"config": OmegaConf.to_container(OmegaConf.from_cli(list(words[1:])))}
        if "keywords" in request:
            return values(classes[0](**{"output_dir": "o", **request["keywords"]}))
        parser = HfArgumentParser(classes)
        if "argv" not in request:
            known = {one.name for owner in classes for one in fields(owner)}
            config = {key: value for key, value in request["config"].items() if key in known}
            found = values(*parser.parse_dict({"output_dir": "o", **config}, allow_extra_keys=True))
            unknown = sorted(set(request["config"]) - known)
        else:
            argv = request["argv"]
            parser.set_defaults(**request.get("config", {}))
            argv = argv if any(word.startswith("--output_dir") for word in argv) else [*argv, "--output_dir", "o"]
            *made, rest = parser.parse_args_into_dataclasses(args=argv, return_remaining_strings=True)
            found, unknown = values(*made), [word.partition("=")[0] for word in rest if word.startswith("-")]
        return {**found, **{f"unknown {word}": "" for word in unknown}}

    return parse


class Parsed(Exception):
    """A script has parsed its arguments."""


def of_own_script(request: Request) -> Values:
    """A script of somebody's own, run to where it parses its arguments."""
    from transformers import HfArgumentParser

    class Once(HfArgumentParser):  # type: ignore[misc]
        def parse_args_into_dataclasses(self, *args: Any, **words: Any) -> Any:
            made = super().parse_args_into_dataclasses(*args, **words)
            raise Parsed(*made)

    path = str(Path(__file__).with_name("own.py"))
    sys.argv = [path, *request["argv"]]
    kept = argparse.ArgumentParser.parse_args

    def parse_args(self: Any, args: Any = None, namespace: Any = None) -> Any:
        made, rest = self.parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        raise Parsed(made)

    owner: Any = sys.modules["transformers"]
    real, owner.HfArgumentParser = owner.HfArgumentParser, Once
    argparse.ArgumentParser.parse_args = parse_args  # type: ignore[method-assign]
    module = types.ModuleType("__main__")
    module.__file__, main = path, sys.modules["__main__"]
    sys.modules["__main__"] = module  # its dataclasses look for their types there
    try:
        exec(compile(request["script"], path, "exec"), vars(module))
    except Parsed as parsed:
        return values(*parsed.args)
    finally:
        sys.modules["__main__"], owner.HfArgumentParser = main, real
        argparse.ArgumentParser.parse_args = kept  # type: ignore[method-assign]
    raise Unjudged("a script that parses no arguments")


def of_llamafactory(framework: Framework) -> Callable[[Request], Values]:
    """Its own checks of a training, without those of installed packages."""
    prepare_transformers()
    hparams: Any = importlib.import_module("llamafactory.hparams.parser")
    for name in ("_check_extra_dependencies", "check_dependencies", "check_version"):
        if hasattr(hparams, name):
            setattr(hparams, name, lambda *_, **__: None)
    hparams.is_torch_bf16_gpu_available = lambda: True

    def parse(request: Request) -> Values:
        with contextlib.suppress(Exception):
            hparams.unset_hf_deepspeed_config()
        wanted = list(request["argv"]) if "argv" in request else request["config"]
        if isinstance(wanted, list):
            config, rest = {}, iter(wanted)
            for word in rest:
                name, equals, value = word.removeprefix("--").partition("=")
                config[name] = value if equals else next(rest, "")
            if not wanted or not wanted[0].startswith("--"):
                return values(config)
            sys.argv = [
                "train",
                *wanted,
                *(word for key in framework.needed if key not in config for word in (f"--{key}", str(framework.needed[key]))),
            ]
            return values(*hparams.get_train_args())
        return values(*hparams.get_train_args({**framework.needed, **wanted}))

    return parse


# -- pydantic


def of_axolotl(framework: Framework) -> Callable[[Request], Values]:
    """The schema with the capabilities of a node of cards."""
    utils: Any
    is_old = not (framework.root / "src/axolotl/utils/schemas/config.py").is_file()
    utils = importlib.import_module("axolotl.utils.config.models.input.v0_4_1" if is_old else "axolotl.utils.schemas.config")
    model = utils.AxolotlConfigWCapabilities
    names = model.model_fields
    plugins = {
        name
        for root in (framework.root / "src", framework.root)
        for path in root.glob("axolotl/integrations/*/args.py")
        for name in re.findall(r"^    (\w+): ", path.read_text(), re.MULTILINE)
    }

    def parse(request: Request) -> Values:
        request = {"config": {}, **request}
        pairs = zip(request.get("argv", ()), [*request.get("argv", ())[1:], ""], strict=False)  # options over a file's keys
        given = {
            word.lstrip("-").replace("-", "_"): yaml.safe_load(value)
            for word, value in pairs
            if word.startswith("--") and value[:2] != "--"
        }
        request["config"] = {**request["config"], **{key: value for key, value in given.items() if value is not None}}
        capabilities = {"bf16": True, "fp8": True, "n_gpu": 8, "n_node": 1, "compute_capability": "sm_90", "tf32": True}
        made = model(
            **{**framework.needed, **request["config"]},
            **{
                name: value
                for name, value in (("capabilities", capabilities), ("env_capabilities", {"torch_version": "2.8.0"}))
                if name in names
            },
        )
        own = {name: value for name, value in request["config"].items() if name in plugins and "plugins" in request["config"]}
        unknown = set(request["config"]) - set(names) - set(made.model_dump()) - own.keys()
        return {**values(made.model_dump()), **values(own), **{f"unknown {word}": "" for word in sorted(unknown)}}

    return parse


#: What says how many rows a step has; where a file leaves it to the trainer, that fills it in.
BATCH = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")


def prepare_deepspeed() -> None:
    """Let older releases import what torch and numpy no longer have, and do not use it."""
    numpy: Any = importlib.import_module("numpy")
    numpy.BUFSIZE = 8192
    agent: Any = importlib.import_module("torch.distributed.elastic.agent.server.api")
    for name in ("log", "_get_socket_with_port"):
        setattr(agent, name, getattr(agent, name, logging.getLogger(__name__)))


def of_deepspeed(framework: Framework) -> Callable[[Request], Values]:
    prepare_deepspeed()
    engine: Any = importlib.import_module("deepspeed.runtime.config")

    def parse(request: Request) -> Values:
        config = json.loads(json.dumps(request["config"]), parse_constant=float)

        def given(value: Any, name: str = "") -> Any:
            """The figures that a trainer puts where a file says auto."""
            if isinstance(value, dict):
                return {key: given(inner, key) for key, inner in value.items()}
            return (
                value
                if value != "auto"
                else 500_000_000
                if re.search("size|threshold|live|reuse", name)
                else 1.0
                if "clip" in name
                else False
            )

        batch = {name: value for name, value in config.items() if name in BATCH and isinstance(value, int)}
        rest = given({name: value for name, value in config.items() if name not in BATCH})
        rows = batch.get(BATCH[1], 1) * batch.get(BATCH[2], 1)
        world = max(1, batch.get(BATCH[0], rows) // rows) if len(batch) == len(BATCH) else 1
        engine.dist = types.SimpleNamespace(get_rank=lambda *_: 0, get_world_size=lambda *_: world)
        made = engine.DeepSpeedConfig({**rest, **(batch or {BATCH[1]: 1})})
        found = {name: value for name, value in vars(made).items() if isinstance(value, (bool, int, float, str, dict))}
        zero = made.zero_config
        return values({**found, "zero": zero.model_dump() if hasattr(zero, "model_dump") else vars(zero)})

    return parse


# -- argparse


def of_main_block(framework: Framework) -> Callable[[Request], Values]:
    """The block under `if __name__ == "__main__"` of an entry point, up to where it starts the training; or the function of a script that
    makes its parser or parses."""

    def parse(request: Request) -> Values:
        entry = framework.entries[request["entry"]]
        path = framework.root / entry["parsers"][0]
        tree = ast.parse(path.read_text())
        if "function" in entry:
            return _of_function(tree, path, entry["function"], request)
        block = next(node for node in tree.body if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test))
        helpers = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.Import, ast.ImportFrom)) and not _is_train(node)]
        taken: list[Any] = []
        space: dict[str, Any] = {"train": taken.append, "__name__": "judged", "__file__": str(path)}
        for node in helpers:
            with contextlib.suppress(Exception):
                exec(compile(ast.Module([node], []), str(path), "exec"), space)
        space["train"] = taken.append
        sys.argv = [str(path), *request["argv"]]
        exec(compile(ast.Module(block.body, []), str(path), "exec"), space)
        return values(*(taken or [space.get("args")]))

    return parse


def _of_function(tree: ast.Module, path: Path, name: str, request: Request) -> Values:
    space: dict[str, Any] = {"__name__": "judged", "__file__": str(path), "__package__": path.parent.name}
    for node in tree.body:
        adds = isinstance(node, ast.Expr) and ".add_argument(" in ast.unparse(node)
        if adds or isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign)):
            if isinstance(node, ast.ImportFrom):
                space.update(
                    dict.fromkeys((one.asname or one.name for one in node.names), str)
                )  # takes a word, where it cannot be imported
            with contextlib.suppress(Exception):
                exec(compile(ast.Module([node], []), str(path), "exec"), space)
    file = dict(_flat(tomllib.loads(request["text"]) if "text" in request else request.get("config", {})))
    sys.argv = [str(path), *request.get("argv", ())]
    wants = any(one.default is one.empty for one in inspect.signature(space[name]).parameters.values())
    made = space[name](*([sys.argv[1:]] if wants else []))
    if not isinstance(made, argparse.ArgumentParser):
        return values(made[0] if isinstance(made, tuple) else made)
    wanted = {key.rpartition(".")[2]: value for key, value in file.items()}
    names = {action.dest for action in made._actions}  # noqa: SLF001
    made, rest = made.parse_known_args(sys.argv[1:])
    unknown = [*(word for word in rest if word.startswith("--")), *sorted(wanted.keys() - names)]
    return {**values(made), **values(wanted), **{f"unknown {word}": "" for word in unknown}}


def _is_train(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == "train"


def of_accelerate(framework: Framework) -> Callable[[Request], Values]:
    launch: Any = importlib.import_module("accelerate.commands.launch")
    config_args: Any = importlib.import_module("accelerate.commands.config.config_args")
    parser = launch.launch_command_parser()

    def parse(request: Request) -> Values:
        argv = list(request.get("argv", ["train.py"]))
        if "argv" in request:
            return values(launch._validate_launch_command(parser.parse_args(argv))[0])  # noqa: SLF001
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(json.dumps(request["config"]))
            file.flush()
            arguments = parser.parse_args(["--config_file", file.name, "train.py"])
            config_args.load_config_from_file(file.name)
            found = values(launch._validate_launch_command(arguments)[0])  # noqa: SLF001
        found.pop("config_file", None)
        return found

    return parse


def of_megatron(framework: Framework) -> Callable[[Request], Values]:
    """Its arguments and what it checks of them, with as many ranks as the launcher starts, else as one replica needs."""
    import torch

    stand_ins.VERSION = "99"  # it refuses old releases of what it asks for
    card = types.SimpleNamespace(name="H100", major=9, minor=0, total_memory=80 << 30, multi_processor_count=132)
    torch.cuda.get_device_properties, torch.cuda.get_device_capability = lambda *_: card, lambda *_: (9, 0)
    importlib.import_module("megatron.core.parallel_state")  # before what imports it back
    arguments: Any = importlib.import_module("megatron.training.arguments")
    arguments.warn_rank_0 = lambda *_, **__: None

    def parse(request: Request) -> Values:
        parser = argparse.ArgumentParser(allow_abbrev=False)
        offered = (
            [arguments.add_megatron_arguments]
            if hasattr(arguments, "add_megatron_arguments")
            else [function for name, function in vars(arguments).items() if re.fullmatch(r"_add_\w+_args|_add_\w+_arguments", name)]
        )
        for add in offered:
            add(parser)
        given = {word.partition("=")[0] for word in request["argv"]}
        needed = [word for key, value in framework.needed.items() if f"--{key}" not in given for word in (f"--{key}", str(value))]
        made, rest = parser.parse_known_args([*needed, *request["argv"]])
        replica = made.tensor_model_parallel_size * made.pipeline_model_parallel_size * made.context_parallel_size
        replica = max(replica, (made.expert_model_parallel_size or 1) * made.pipeline_model_parallel_size)
        made.rank, made.world_size = 0, request.get("world") or replica
        made._is_global_batch_size_explicitly_specified = made.global_batch_size is not None  # noqa: SLF001
        is_sharded = any("fsdp" in word for word in request["argv"])
        os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = request.get("connections") or ("8" if is_sharded else "1")  # what each insists on
        arguments.validate_args(made, {})
        return {**values(made), **{f"unknown {word}": "" for word in rest if word.startswith("--")}}

    return parse


def of_neox(framework: Framework) -> Callable[[Request], Values]:
    """NeoXArgs of a file, with all that it computes and checks for eight cards."""
    import torch

    torch.cuda.device_count = lambda: 8
    made: Any = importlib.import_module("megatron.neox_arguments").NeoXArgs

    def parse(request: Request) -> Values:
        config = {key.replace("-", "_"): value for key, value in request["config"].items()}
        unknown = sorted(config.keys() - made.__dataclass_fields__.keys())
        known = {key: value for key, value in config.items() if key not in unknown}
        return {**values(made.from_dict({**framework.needed, **known})), **{f"unknown {word}": "" for word in unknown}}

    return parse


def of_torchrun(_: Framework) -> Callable[[Request], Values]:
    """The options of torchrun and of `python -m torch.distributed.launch`, of the torch that is installed."""
    parsed = importlib.import_module("torch.distributed.launch").parse_args
    return lambda request: _launched(parsed(request["argv"]))


def of_deepspeed_launch(_: Framework) -> Callable[[Request], Values]:
    prepare_deepspeed()
    parsed = importlib.import_module("deepspeed.launcher.runner").parse_args
    return lambda request: _launched(parsed(request["argv"]))


def _launched(made: argparse.Namespace) -> Values:
    """What a launcher made of its own options; those of the script it starts are that one's."""
    return {name: value for name, value in values(made).items() if name not in ("training_script_args", "user_args")}


def of_allocator(_: Framework) -> Callable[[Request], Values]:
    """The variable that the allocator of the installed torch parses."""
    import torch

    def parse(request: Request) -> Values:
        for value in request["config"].values():
            torch._C._accelerator_setAllocatorSettings(value)  # noqa: SLF001
        return values(request["config"])

    return parse


def of_declared(framework: Framework) -> Callable[[Request], Values]:
    """What the sources of an entry point declare, where its parser cannot be imported: names, kinds and choices of options."""
    from edits.declared import declared

    said = {name: declared(entry, framework.root, framework.beside) for name, entry in framework.entries.items()}

    def parse(request: Request) -> Values:
        found: Values = {}
        words = iter([*request["argv"], "--"]) if "argv" in request else iter(())
        pairs = [pair for form in ("config", "keywords") for pair in _flat(request.get(form, {}))]
        pairs += _flat(tomllib.loads(request.get("text", "")))
        if framework.entries[request["entry"]].get("variables"):  # others are other programs'
            pairs = [(key.lower(), value) for key, value in pairs if said[request["entry"]].find(key.lower())]
        name, given = "", list[str]()
        for word in words:
            if framework.entries[request["entry"]].get("overrides") and re.match(r"[+~]*[\w.@/]+=", word):
                pairs.append(tuple(word.split("=", 1)))
            elif re.match(r"--?[a-zA-Z]|--$", word):
                if name:
                    pairs.append((name, " ".join(given)))
                name, _, value = word.lstrip("-").partition("=")
                given = [value] if value else []
            else:
                given.append(word)
        for name, value in pairs:
            option = said[request["entry"]].find(name) or said[request["entry"]].find(name.removeprefix("no-").removeprefix("no_"))
            if option is None:
                found[f"unknown --{name}"] = ""
                continue
            if "${" in value or "keywords" in request:
                found[name.replace("-", "_")] = value
                continue
            if option.choices and value not in (*option.choices, "None", "null") and "None" not in option.choices:
                raise ValueError(f"argument --{name}: invalid choice: {value} (choose from {', '.join(option.choices)})")
            if option.kind in ("int", "float") and not re.fullmatch(r"-?[\d._]+(e[-+]?\d+)?[kKmMgG]?|auto|None|null|", value):
                raise ValueError(f"argument --{name}: invalid {option.kind} value: {value}")
            found[name.replace("-", "_")] = value
        return found

    return parse


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in config.items():
        if isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
            yield from _flat({f"{name}.{number}": one for number, one in enumerate(value)}, prefix)
        elif isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(value)


def _of_server(parser: argparse.ArgumentParser) -> Callable[[Request], Values]:
    """The options of a server; what a file or a call in Python says is given to them."""
    known, left = parser.parse_known_args, list[str]()

    def keep(*words: Any, **named: Any) -> Any:
        made, left[:] = known(*words, **named)
        return made, []

    parser.parse_known_args = keep  # type: ignore[method-assign]
    off = {word for action in parser._actions for word in action.option_strings if word.startswith("--no-")}  # noqa: SLF001

    def parse(request: Request) -> Values:
        made: Any = parser.parse_args(
            [*_words(request.get("config", {}), ()), *_words(request.get("keywords", {}), off), *request.get("argv", ())]
        )
        return {**values(made), **{f"unknown {word.partition('=')[0]}": "" for word in left if word.startswith("-")}}

    return parse


def _words(config: Mapping[str, Any], off: Collection[str]) -> Iterator[str]:
    """Keys as options. `off`: the options that say no."""
    for key, value in config.items():
        name = key.replace("_", "-")
        if value is False and f"--no-{name}" in off:
            yield f"--no-{name}"
        elif value is True:
            yield f"--{name}"
        elif value is not False and value is not None:
            yield from (f"--{name}", json.dumps(value) if isinstance(value, (dict, list)) else str(value))


def of_sglang(framework: Framework) -> Callable[[Request], Values]:
    cache: Any = importlib.import_module("triton.runtime.cache")
    for name in ("default_cache_dir", "default_dump_dir", "default_override_dir"):
        setattr(cache, name, str)  # older releases of triton have them
    parser = argparse.ArgumentParser()
    importlib.import_module("sglang.srt.server_args").ServerArgs.add_cli_args(parser)
    return _of_server(parser)


def of_vllm(framework: Framework) -> Callable[[Request], Values]:
    """The options of `vllm serve`, as on a machine with NVIDIA's cards; its kernels are not registered."""
    from torch import library

    def tried(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **named: Any) -> Any:
            with contextlib.suppress(TypeError, RuntimeError):
                return function(*words, **named)

        return call

    for name in ("impl", "define"):
        setattr(library.Library, name, tried(getattr(library.Library, name)))
    with contextlib.suppress(ModuleNotFoundError):  # before 0.5.1
        importlib.import_module("vllm.platforms").current_platform.device_type = "cuda"
    importlib.import_module("vllm.engine.arg_utils")
    made: Any = importlib.import_module("vllm.entrypoints.openai.cli_args").make_arg_parser
    if not inspect.signature(made).parameters:
        return _of_server(made())
    is_old = not (framework.root / "vllm/utils/argparse_utils.py").is_file()
    parser = importlib.import_module("vllm.utils" if is_old else "vllm.utils.argparse_utils").FlexibleArgumentParser()
    return _of_server(made(parser))


# -- Hydra, tyro, jsonargparse


def of_hydra(framework: Framework) -> Callable[[Request], Values]:
    from hydra import compose, initialize_config_dir  # type: ignore[import-not-found]
    from hydra.core.global_hydra import GlobalHydra  # type: ignore[import-not-found]
    from omegaconf import OmegaConf

    def parse(request: Request) -> Values:
        folder, *names = framework.entries[request["entry"]]["hydra"]
        named = re.compile(r"--?(config-(path|dir|name)|cp|cd|cn)$")  # whose value is the next word
        words = request.get("argv", ())
        argv = [word for before, word in zip(["", *words], words, strict=False) if not word.startswith("-") and not named.match(before)]
        options = " ".join(request.get("argv", ()))
        name = next((one for one in names if re.search(rf"--config-name[= ]'?{one}\b", options)), names[0])
        own = request.get("config")
        GlobalHydra.instance().clear()
        with tempfile.TemporaryDirectory() as place:
            if own is not None:  # a configuration of one's own, over the framework's
                Path(place, "own.yaml").write_text(json.dumps({"defaults": [name, "_self_"], **own}))
                name, argv = "own", [*argv, f"hydra.searchpath=[file://{framework.root / folder}]"]
            with initialize_config_dir(config_dir=place if own is not None else str(framework.root / folder), version_base=None):
                made = compose(config_name=name, overrides=argv)
        _check_of_verl(made, "megatron" in name)
        try:
            return values(OmegaConf.to_container(made, resolve=True))
        except Exception:  # resolvers of the user's own
            return values(OmegaConf.to_container(made, resolve=False))

    return parse


def _check_of_verl(config: Any, is_megatron: bool) -> None:
    """What verl checks of a configuration of PPO before it trains, as far as that needs neither cards nor models."""
    if "actor_rollout_ref" not in config or is_megatron:
        return
    try:
        checks: Any = importlib.import_module("verl.utils.config").validate_config
        words: dict[str, Any] = {"config": config, "use_reference_policy": False, "use_critic": config.algorithm.adv_estimator == "gae"}
        importlib.import_module("verl.workers.config")  # what the configuration names, which Hydra would import without stand-ins
    except (ImportError, AttributeError):
        owner: Any = types.SimpleNamespace(config=config, use_reference_policy=False, use_critic=config.algorithm.adv_estimator == "gae")
        checks, words = importlib.import_module("verl.trainer.ppo.ray_trainer").RayPPOTrainer._validate_config, {"self": owner}  # noqa: SLF001
    try:
        checks(**words)
    except (AssertionError, ValueError):
        raise
    except Exception:  # a stand-in is not enough for it
        return


def of_torchtitan(framework: Framework) -> Callable[[Request], Values]:
    is_old = not (framework.root / "torchtitan/config/manager.py").is_file()
    manager: Any = importlib.import_module("torchtitan.config_manager" if is_old else "torchtitan.config.manager")

    def parse(request: Request) -> Values:
        if "keywords" in request:
            raise Unjudged("configurations in Python, of releases after these")
        argv = [word for word in request.get("argv", ()) if "config_file" not in word and not word.endswith(".toml")]
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(request.get("text", ""))
            file.flush()
            argv = [f"--job.config_file={file.name}", *argv] if "text" in request else argv
            if hasattr(manager, "ConfigManager"):
                found = values(manager.ConfigManager().parse_args(argv))
            else:
                config = manager.JobConfig()
                config.parse_args(argv)
                found = values(config.to_dict())
        found.pop("job.config_file", None)
        return found

    return parse


def of_functions(framework: Framework) -> Callable[[Request], Values]:
    from jsonargparse import ArgumentParser, set_docstring_parse_options  # type: ignore[import-not-found]

    with contextlib.suppress(Exception):
        set_docstring_parse_options(attribute_docstrings=True)

    def parse(request: Request) -> Values:
        path, name = framework.entries[request["entry"]]["functions"][0]
        parser = ArgumentParser(exit_on_error=False)
        parser.add_argument("--config", action="config")
        function = getattr(framework.module(framework.root / path), name)
        parser.add_function_arguments(function, as_positional="config" not in request, fail_untyped=False)
        made: Any = parser.parse_object(request["config"]) if "config" in request else None
        return values((parser.parse_args(request["argv"], namespace=made) if "argv" in request else made).as_dict())

    return parse


def of_components(framework: Framework) -> Callable[[Request], Values]:
    """torchtune: every block that names a component is a call of it, whose parameters are looked up; other keys are those that the
    recipe reads."""
    import torch
    from edits.declared import declared
    from omegaconf import OmegaConf

    torch.hpu = types.SimpleNamespace(is_available=lambda: False)  # what it asks of Intel's cards

    def parse(request: Request) -> Values:
        shipped = framework.root / "recipes" / "configs" / f"{request.get('files', {}).get('config', '').removesuffix('.yaml')}.yaml"
        if "config" not in request and not shipped.is_file():
            raise Unjudged("a configuration that was not given")
        config = OmegaConf.create(request["config"]) if "config" in request else OmegaConf.load(shipped)
        config = OmegaConf.merge(
            config, OmegaConf.from_dotlist([word for word in request.get("argv", ()) if "=" in word and word[0] != "-"])
        )
        plain = OmegaConf.to_container(config, resolve=True)
        read = declared(framework.entries[request["entry"]], framework.root, framework.beside)
        found: Values = {word: "" for word in request.get("argv", ()) if word.startswith("~")}
        for key, value in plain.items():
            if isinstance(value, dict) and "_component_" in value:
                module, _, name = value["_component_"].rpartition(".")
                owner = getattr(importlib.import_module(module), name)
                words = {word: inner for word, inner in value.items() if word != "_component_"}
                with contextlib.suppress(ValueError):
                    inspect.signature(owner).bind_partial(**words)
                found |= values({key: value})
            elif read.find(key) is not None:
                found |= values({key: value})
            else:
                found[f"unknown {key}"] = ""
        return found

    return parse


def of_structured(framework: Framework) -> Callable[[Request], Values]:
    """A dataclass that OmegaConf fills from a file and from overrides, and what it checks of itself."""
    from omegaconf import MissingMandatoryValue, OmegaConf

    def parse(request: Request) -> Values:
        made: Any = framework.loaded(framework.entries[request["entry"]]["classes"][0])
        line = re.sub(r"(^|\x00)--([\w.]+)\x00(?!-)", r"\1\2=", "\0".join(request.get("argv", ())))  # --key value
        overrides = [word.lstrip("+-") for word in line.split("\0") if "=" in word]
        given = OmegaConf.merge(OmegaConf.create(request.get("config", {})), OmegaConf.from_dotlist(overrides))
        given = {key: value for key, value in OmegaConf.to_container(given, resolve=True).items() if key not in ("config", "defaults")}
        filled = OmegaConf.merge(OmegaConf.structured(made), given)
        with contextlib.suppress(MissingMandatoryValue):  # what an excerpt lacks
            made = OmegaConf.to_object(filled)
            if hasattr(made, "deep_post_init"):
                made.deep_post_init()
            return values(made)
        return values(OmegaConf.to_container(filled, resolve=True))

    return parse


def of_pydantic(framework: Framework) -> Callable[[Request], Values]:
    """The model that a file is validated against, with the overrides of its command."""
    from omegaconf import OmegaConf

    def parse(request: Request) -> Values:
        names = [name for name in framework.entries[request["entry"]]["classes"] if Trees([framework.root]).find(name)]
        if not names:
            raise Unjudged(request["entry"])
        given = tomllib.loads(request["text"]) if "text" in request else request.get("config", {})
        line = re.sub(r"(^|\x00)--([\w.-]+)\x00(?!-)", r"\1\2=", "\0".join(request.get("argv", ())))  # --key value
        overrides = [
            f"{key.replace('-', '_')}={value}" for key, equals, value in (word.partition("=") for word in line.split("\0")) if equals
        ]
        merged = OmegaConf.merge(OmegaConf.create(given), OmegaConf.from_dotlist(overrides))
        return values(framework.loaded(names[0])(**OmegaConf.to_container(merged)).model_dump())

    return parse


DRIVERS: Mapping[str, Callable[[Framework], Callable[[Request], Values]]] = {
    "dataclasses": of_dataclasses,
    "bare dataclasses": lambda framework: of_dataclasses(framework, bare=True),
    "llamafactory": of_llamafactory,
    "axolotl": of_axolotl,
    "deepspeed": of_deepspeed,
    "main block": of_main_block,
    "accelerate": of_accelerate,
    "vllm": of_vllm,
    "sglang": of_sglang,
    "megatron": of_megatron,
    "declared": of_declared,
    "neox": of_neox,
    "torchrun": of_torchrun,
    "deepspeed launcher": of_deepspeed_launch,
    "allocator": of_allocator,
    "hydra": of_hydra,
    "torchtitan": of_torchtitan,
    "functions": of_functions,
    "components": of_components,
    "structured": of_structured,
    "pydantic": of_pydantic,
}


def _parsed(parse: Callable[[Request], Values], request: Request) -> Values:
    """What a parser makes of a request, to which it is given what it insists on and an excerpt of a script lacks."""
    try:
        return parse(request)
    except ValueError as error:
        either = re.search(r"Please set at least one of '[\w.]+' or '([\w.]+)'", str(error))  # verl
        if either and "argv" in request and f"{either[1]}=1" not in request["argv"]:
            return _parsed(parse, {**request, "argv": [*request["argv"], f"{either[1]}=1"]})
        lacking = re.match(r"the following arguments are required: (.*)", str(error))
        names = [word.rpartition("/")[0] or word for word in lacking[1].split(", ")] if lacking else []
        if "argv" not in request or not names or not all(name.startswith("--") for name in names):
            raise
        return parse({**request, "argv": [*request["argv"], *(word for name in names for word in (name.partition("/")[0], "x"))]})


#: Packages whose `__init__` imports what trains.
SHALLOW = {
    "hydra": ("verl", "verl.utils", "verl.trainer", "verl.trainer.ppo"),
    "megatron": ("megatron", "megatron.training", "megatron.core", "megatron.core.inference", "megatron.core.inference.contexts"),
    "torchtitan": ("torchtitan",),
    "sglang": ("sglang",),
    "neox": ("megatron",),
    "axolotl": ("axolotl", "axolotl.utils", "axolotl.utils.config"),
}


def releases_known(trees: Sequence[Path]) -> None:
    """Unpacked packages have no metadata: their releases are in the names of their folders."""
    known = {name: release for tree in trees for name, _, release in [tree.name.rpartition("-")]}
    own = importlib.metadata.version

    def version(distribution_name: str) -> str:
        return known.get(distribution_name.lower().replace("_", "-")) or known.get(distribution_name) or own(distribution_name)

    importlib.metadata.version = version


def main() -> int:
    driver, entries, *folders = sys.argv[1:]
    del sys.argv[1:]  # some scripts read them when they are imported
    roots = [Path(folder) for folder in folders]
    sys.path[1:1] = [str(path) for root in roots for path in (root / "src", root) if path.is_dir()]
    os.environ.update(
        {
            "CUDA_VISIBLE_DEVICES": "",
            "WORLD_SIZE": "1",
            "RANK": "0",
            "LOCAL_RANK": "0",
            "DS_ACCELERATOR": "cpu",
            "HF_HUB_OFFLINE": "1",
            "DISABLE_VERSION_CHECK": "1",
        }
    )
    sys.modules["transformers.dependency_versions_check"] = types.ModuleType("transformers.dependency_versions_check")
    sys.modules["transformers.dependency_versions_check"].dep_version_check = lambda *_: None  # type: ignore[attr-defined]
    typing.override = getattr(typing, "override", lambda function: function)  # type: ignore[attr-defined]  # older Pythons lack it
    releases_known(roots)
    for device in ("torch_npu", "libtpu", "torch_xla", "transformers_neuronx", "torch_neuronx"):  # no stand-in for what would be one
        sys.modules[device] = None  # type: ignore[assignment]
    ErrorParser.install()
    out, sys.stdout = sys.stdout, io.StringIO()
    with contextlib.redirect_stderr(io.StringIO()) as printed:
        install([*roots, Path(__file__).parent])
        shallow(SHALLOW.get(driver, ()), [path for root in roots for path in (root / "src", root)])
        said = json.loads(entries)
        framework = Framework(roots[0], roots[1:], said, said.pop("needed", {}))
        parse = DRIVERS[driver](framework)
        for line in sys.stdin.readlines():  # now: exit() closes it
            printed.seek(0)
            printed.truncate()
            try:
                request = json.loads(line)
                files = {f"file {name}": file for name, file in request.get("files", {}).items()}
                answer: Mapping[str, Any] = {"error": "", "values": {**_parsed(parse, request), **files}}
            except SystemExit as error:
                answer = {"error": f"exit {error.code}: {' '.join(printed.getvalue().split())[:300]}", "values": {}}
            except Exception as error:
                unfit = isinstance(error, (ImportError, Unjudged)) or "Failed to import" in str(error)
                told = str(error) or traceback.extract_tb(error.__traceback__)[-1].line or ""
                answer = {"error": f"{UNJUDGED if unfit else ''}{type(error).__name__}: {' '.join(told.split())[:300]}", "values": {}}
            print(json.dumps(answer), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
