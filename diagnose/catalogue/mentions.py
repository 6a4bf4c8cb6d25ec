"""Which models a text speaks of where nothing gives the path of one: a name with a size, a class, a family's word (rules/mentions.yaml)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache

from diagnose import rule_files
from diagnose.catalogue.models import MOST_KIN, families, family_models, kin, model
from diagnose.catalogue.parameter_count import Model

#: A size, and a name that ends in front of it.
_SIZED = r"(?<![\d.])\d{1,3}(?:[.x]\d{1,2})?[bB](?![A-Za-z0-9])"
_NAME = r"[A-Za-z][\w.+-]{0,40}[ _/-]?$"
#: A class of transformers that makes a model, or the shape of one.
_CLASS = (
    r"(?<![\w.])([A-Z][A-Za-z0-9]{1,20}?)(?:Config|ForCausalLM|LMHeadModel|DoubleHeadsModel|ForConditionalGeneration|ForMaskedLM|Model)\("
)
#: Behind the name of a family whose class a text has.
_OF_FAMILY = ", any size"
#: Names that are looked up; a text with more than a few models is a list of them.
_TRIED, _MOST = 24, 3


def named(text: str) -> list[str]:
    """The names by which a text speaks of models, those with a size first; none where it names many."""
    names = list(dict.fromkeys(name.lower() for name in _sized(text) if models_of(name)))
    names = names or list(_apart(text))
    classes = dict.fromkeys(match[1].lower() for match in re.finditer(_CLASS, text))
    names = names or [f"{family}{_OF_FAMILY}" for family in classes if family_models(family)]
    names = names or list(dict.fromkeys(match[1].lower() for match in _words("bare").finditer(text)))
    return names if len(names) <= _MOST else []


def _sized(text: str) -> Iterator[str]:
    for match in list(re.finditer(_SIZED, text))[:_TRIED]:
        name = re.search(_NAME, text[max(0, match.start() - 48) : match.start()])
        if name is not None:
            yield name[0] + match[0]


def _apart(text: str) -> Iterator[str]:
    """Names of the one family that a text names, with the sizes that stand elsewhere in it."""
    families = {match[1].lower() for match in _words("stems").finditer(text)}
    sizes = dict.fromkeys(match[0].lower() for match in re.finditer(_SIZED, text))
    if len(families) == 1 and len(sizes) <= _MOST:
        family = families.pop()
        yield from (name for size in sizes if models_of(name := f"{family}-{size}"))


@lru_cache(maxsize=256)
def models_of(name: str) -> list[Model]:
    """The models that a name may stand for: the one of this name, those that it may be a variant of, those of a family."""
    if name.endswith(_OF_FAMILY):
        return family_models(name.removesuffix(_OF_FAMILY))[:MOST_KIN]
    known = model(name)
    if known is not None:
        return [known]
    bare = rule_files.table("mentions")["bare"].get(name.lower(), ())
    return kin(name) or [shape for each in bare if (shape := model(each)) is not None]


def name_in_program(program: str | None, path: str) -> str:
    """A path that tells no more than a size, with the family whose models the program runs; "" where it runs any."""
    family, size = rule_files.table("mentions")["programs"].get(program), re.search(_SIZED, path)
    return f"{family}-{size[0]}" if family and size else ""


def graph(text: str) -> Mapping[str, int] | None:
    """Nodes and edges of the one public graph that a text names; None where it names none or several."""
    named = {match[0].lower() for match in _words("graphs").finditer(text)}
    return rule_files.table("mentions")["graphs"][named.pop()] if len(named) == 1 else None


def usual_picture(network: str | None) -> int | None:
    """The pixels that a network for pictures draws where nothing else is said."""
    side = rule_files.table("mentions")["pictures"].get(network)
    return side * side if side else None


#: Parts of a model by their classes, and modules of transformers, with the family in front or behind.
_PART = (
    r"(?<![A-Za-z])([A-Z][A-Za-z0-9]{1,20}?)"
    r"(?:DecoderLayer|EncoderLayer|Block|Layer|ForCausalLM|LMHeadModel|PreTrainedModel|Attention|MLP)(?![a-z])"
    r"|(?:transformers[/\\]models[/\\]|modeling_)([a-z0-9_]{2,24}?)(?:[/\\]|\.py)|(?<=envs[/\\])([A-Za-z]{4,20})"
)


def networks(text: str) -> list[str]:
    """The networks and tables of rules/mentions that a text names, and families of rules/models whose classes or modules it shows."""
    plain = text.lower()
    told = any(word in plain for word in rule_files.table("mentions")["networks"])
    named = [match[0].lower() for match in _networks().finditer(text)] if told else []
    known = families()
    parts = (next(filter(None, match.groups())).lower() for match in re.finditer(_PART, text))
    return list(dict.fromkeys([*named, *(part for part in parts if part in known)]))[:_TRIED]


def layers_of(word: str) -> Mapping[str, list[list[int]]]:
    """What a network of the table has; empty for a family of models."""
    layers: Mapping[str, list[list[int]]] = rule_files.table("mentions")["networks"].get(word, {})
    return layers


@cache
def _networks() -> re.Pattern[str]:
    words = sorted(rule_files.table("mentions")["networks"], key=len, reverse=True)
    return re.compile(rf"(?<![a-zA-Z])(?:{'|'.join(map(re.escape, words))})(?![a-z])", re.IGNORECASE)


@cache
def _words(part: str) -> re.Pattern[str]:
    """The words of a part of the table, where they stand alone; Chinese letters may stand beside them."""
    words = sorted(rule_files.table("mentions")[part], key=len, reverse=True)
    return re.compile(rf"(?<![\w/.-])({'|'.join(map(re.escape, words))})(?![\w-])", re.IGNORECASE | re.ASCII)
