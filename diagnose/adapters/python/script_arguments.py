"""The options that a script declares with argparse: what its command line may be given."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from diagnose.adapters.python.script_calls import callee_name
from diagnose.adapters.python.script_names import PARSERS


def declared_options(text: str) -> Mapping[str, bool] | None:
    """The options of a script by name, and whether each is a switch without a value; None where something else than argparse, or nothing
    that can be read, takes its command line."""
    if "add_argument" not in text or re.search(rf"\b(?:{'|'.join(PARSERS)}|parse_known_args|add_arguments|parents)\b", text):
        return None
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and callee_name(node.func) == "add_argument"]
    options: dict[str, bool] = {}
    for call in calls:
        actions = [word.value.value for word in call.keywords if word.arg == "action" and isinstance(word.value, ast.Constant)]
        for arg in call.args:
            if isinstance(arg, ast.Constant) and isinstance(arg.value, str) and arg.value.startswith("--"):
                options[arg.value[2:].replace("-", "_")] = any(str(action).startswith("store_") for action in actions)
    return options or None
