"""Recognises the framework of a config by its keys or classes, never by its file name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.formats.settings import Form
from diagnose.adapters.schema import framework_tables, lexicon
from diagnose.phrases import Text, phrase

if TYPE_CHECKING:
    from diagnose.adapters.python.script_values import Script

#: Values of KIND in --config KIND=FILE that name a form and no framework.
FORMS: Mapping[str, Form] = {"shell": "shell", "python": "python"}


def resolve_forced_kind(kind: str | None) -> str | None:
    """The framework or form that the user's KIND names (`llamafactory` and `llamafactory_yaml` alike); None for an unknown one."""
    if kind is None:
        return None
    short = re.sub(r"_(?:yaml|json|cli)$", "", kind)
    name = framework_tables.resolve_alias(short)
    return name if name in framework_tables.names() or name in FORMS else None


def kind_of_keys(leaves: Iterable[Leaf]) -> tuple[str | None, Leaf | None]:
    """The framework whose keys these are, and the key that shows it. The most specific framework is tried first.

    A framework is claimed by something of its own only: keys that many programs have (`batch_size`) are anybody's.
    """
    by_name = {leaf.key: leaf for leaf in leaves}
    values = _value_leaves(by_name)
    if len(values) != 1:
        for name in framework_tables.names():
            for sign in framework_tables.signs(name).get("keys", ()):
                if all(key in by_name for key in sign) and (
                    not all(map(lexicon.is_common, sign)) or _is_at_home(name, [leaf.key for leaf in values])
                ):
                    return name, by_name[sign[0]]
    kinds, witness = _kinds_of_keys(by_name)
    return (
        (kinds[0], witness)
        if len(kinds) == 1 and (len(values) == 1 or _own_keys(kinds[0], [leaf.key for leaf in values]) > 1)
        else (None, None)
    )


def kind_of_module(leaves: Iterable[Leaf]) -> str | None:
    """The framework whose configurations are modules of Python with these settings."""
    keys = {leaf.key for leaf in leaves}
    return next(
        (name for name in framework_tables.names() for sign in framework_tables.signs(name).get("modules", ()) if keys.issuperset(sign)),
        None,
    )


def _is_at_home(name: str, keys: Collection[str]) -> bool:
    """Whether a framework knows most of the keys, as in a fragment of its configs, or one of them is its own."""
    return 2 * sum(key in framework_tables.known(name) for key in keys) > len(keys) or _own_keys(name, keys) > 0


def _own_keys(name: str, keys: Iterable[str]) -> int:
    """How many keys are this framework's, or its kin's, and nobody else's."""
    kin = framework_tables.lineage(name)[-1]
    others = [other for other in _of_files() if framework_tables.lineage(other)[-1] != kin]
    own = (key for key in keys if key in framework_tables.known(name) and not lexicon.is_common(key))
    return sum(all(key not in framework_tables.known(other) for other in others) for key in own)


def ambiguous_kinds(leaves: Iterable[Leaf]) -> tuple[str, ...]:
    """All frameworks that fit these keys equally well; the rest of the job must decide between them."""
    return _kinds_of_keys({leaf.key: leaf for leaf in leaves})[0]


def _value_leaves(by_name: Mapping[str, Leaf]) -> list[Leaf]:
    return [leaf for leaf in by_name.values() if leaf.shape != "map" or len(by_name) == 1]


def _kinds_of_keys(by_name: Mapping[str, Leaf]) -> tuple[tuple[str, ...], Leaf | None]:
    values = _value_leaves(by_name)
    if len(values) == 1 and (result := _kinds_of_one(values[0]))[0]:
        return result
    return _kinds_by_majority(by_name)


def _kinds_of_one(leaf: Leaf) -> tuple[tuple[str, ...], Leaf | None]:
    """Frameworks of a single key: the one whose sign it is, else all that know it and turn a knob with it."""
    for name in framework_tables.names():
        if [leaf.key] in framework_tables.signs(name).get("keys", ()):
            return (name,), leaf
    knowing = [name for name in _of_files() if leaf.key in framework_tables.known(name)]
    turns = any(key.key == leaf.key and not key.code for name in knowing for key in framework_tables.table(name).keys)
    return (_unlike(knowing), leaf) if turns else ((), None)


def _kinds_by_majority(by_name: Mapping[str, Leaf]) -> tuple[tuple[str, ...], Leaf | None]:
    """For a fragment without a framework's sign: the frameworks that know most of its keys, at least two and more than half."""
    score, best = 1, dict[str, Leaf]()
    for name in _of_files():
        known = (
            [leaf for key, leaf in by_name.items() if key in framework_tables.known(name)]
            if not framework_tables.by_signs_only(name)
            else []
        )
        if len(known) < max(score, 2) or 2 * len(known) <= sum("." not in key for key in by_name):
            continue
        tab = framework_tables.table(name)
        turning = [leaf for leaf in known if leaf.shape != "map" and tab.named(leaf.key)]  # a block of such a name says nothing yet
        if not turning:
            continue
        best = {**(best if len(known) == score else {}), name: turning[0]}
        score = len(known)
    kinds = _unlike(list(best))
    return kinds, best[kinds[0]] if kinds else None


def _of_files() -> list[str]:
    """Frameworks configured by files; launchers have options, libraries have classes."""
    return [name for name in framework_tables.names() if framework_tables.signs(name).get("keys") or name in framework_tables.trainers()]


def _unlike(names: list[str]) -> tuple[str, ...]:
    """Drop a framework if another candidate extends it or if it is recognised by signs only."""
    candidates = [name for name in names if not framework_tables.by_signs_only(name)] or names
    return tuple(name for name in candidates if not any(base in candidates for base in framework_tables.bases(name)))


def programs_of_options(options: Collection[str]) -> Iterator[str]:
    """The trainers and engines that these options of a command, or names of printed arguments, are a sign of; the more particular first."""
    for name in dict.fromkeys((*framework_tables.trainers(), *framework_tables.engines())):
        signs = (sign for sign in framework_tables.signs(name).get("flags", ()) if all(option in options for option in sign))
        if any(not all(map(lexicon.is_common, sign)) or _is_at_home(name, options) for sign in signs):
            yield name


def trainer_of_overrides(options: Collection[str]) -> str | None:
    """The trainer whose keys these overrides without a command are, as in a file that nests them: `actor_rollout_ref.model.path` shows the
    key `actor_rollout_ref` too. None where no key, or one that anybody has, shows it."""
    keys = {".".join(parts[:count]) for option in options for parts in [option.split(".")] for count in range(1, len(parts) + 1)}
    for name in framework_tables.trainers():
        for sign in framework_tables.signs(name).get("keys", ()):
            if keys.issuperset(sign) and not all(map(lexicon.is_common, sign)):
                return name
    return None


def python_classes(text: str = "") -> frozenset[str]:
    """Names of the classes in a script that any framework's table reads."""
    return frozenset(name for framework in framework_tables.names() for name in _classes(framework, text))


def model_first_calls(text: str) -> dict[str, tuple[str, str]]:
    """Calls whose first argument is the model, with their library and the key that it sets: `LLM("org/model")` sets vLLM's `model`."""
    return {
        name: (framework_tables.signs(framework).get("imports", ""), framework_tables.table(framework).positional)
        for framework in framework_tables.names()
        for name in _calls(framework, text, "model_first")
    }


def _classes(framework: str, text: str) -> Iterable[str]:
    return _calls(framework, text, "classes")


def _calls(framework: str, text: str, sign: str) -> Iterable[str]:
    """The calls under a sign of the framework; none if it asks for an import that the script lacks."""
    signs = framework_tables.signs(framework)
    module = signs.get("imports", "")
    if module and not re.search(rf"^[ \t]*(?:from[ \t]+|import[ \t](?:[^\n#]*,)?[ \t]*){module}\b", text, re.MULTILINE):
        return ()
    return signs.get(sign, ())  # type: ignore[no-any-return]


def kind_of_classes(script: Script, text: str) -> str:
    """The framework whose classes the script calls, else the role that a plain script has."""
    called = set(script.classes)
    for name in framework_tables.names():
        own = called & set(_classes(name, text))
        if own - lexicon.common_classes() or (own and re.search(rf"^[ \t]*(?:from|import)[ \t]+{name}\b", text, re.MULTILINE)):
            return name
    is_known = bool(called - lexicon.common_classes())
    return framework_tables.of_role("general") if is_known else framework_tables.of_role("plain") if script.leaves else "python"


# -- a config that nobody recognises


def unknown_kind_text(leaves: Sequence[Leaf]) -> Text:
    """The message for a config of unknown kind: the frameworks that fit equally, or that none does."""
    kinds = ambiguous_kinds(leaves)
    return phrase("adapters.several_kinds", kinds=", ".join(kinds)) if len(kinds) > 1 else phrase("adapters.unknown_kind")
