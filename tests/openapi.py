"""From an OpenAPI description to requests that it allows and requests that it does not: the schemas that pydantic writes, no more."""

from __future__ import annotations

from typing import Any

import jsonschema
from hypothesis import strategies as st

Schema = dict[str, Any]

#: Any JSON, for what a schema leaves open and for what it forbids.
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
#: Texts beside those that hypothesis thinks of: what the texts of this API are.
TEXTS = st.sampled_from(
    [
        "",
        "CUDA out of memory. Tried to allocate 2.00 GiB.",
        "per_device_train_batch_size: 4\ncutoff_len: 2048\n",
        "A100-80GB",
        "Qwen/Qwen2-7B",
        "{}",
        "8",
    ]
)
NAMES = st.sampled_from(["parallel.world", "train.max_seq_len", "train.precision", "log.family", "no.such"])


def valid(schema: Schema, parts: dict[str, Schema]) -> st.SearchStrategy[Any]:
    """Values that the schema allows. Raises KeyError for a keyword that is not known here: then this is to be extended."""
    if "$ref" in schema:
        return valid(parts[schema["$ref"].rpartition("/")[2]], parts)
    if "anyOf" in schema:
        return st.one_of([valid(each, parts) for each in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind, most = schema["type"], min(schema.get("maxLength", 60), 60)
    if kind == "string":
        return st.text(max_size=most) | TEXTS.filter(lambda text: len(text) <= most)
    if kind == "array":
        return st.lists(valid(schema["items"], parts), min_size=schema.get("minItems", 0), max_size=3)
    if kind == "object":
        return _object(schema, parts)
    whole = st.integers(schema.get("minimum"), schema.get("maximum"))
    plain: dict[str, st.SearchStrategy[Any]] = {
        "null": st.none(),
        "boolean": st.booleans(),
        "number": st.floats(allow_nan=False, allow_infinity=False),
    }
    return whole if kind == "integer" else plain[kind]


def _object(schema: Schema, parts: dict[str, Schema]) -> st.SearchStrategy[Any]:
    if "properties" not in schema:
        return st.dictionaries(NAMES | st.text(max_size=20), valid(schema["additionalProperties"], parts), max_size=3)
    made = {name: valid(each, parts) for name, each in schema["properties"].items()}
    needed = set(schema.get("required", ()))
    return st.fixed_dictionaries(
        {name: each for name, each in made.items() if name in needed},
        optional={name: each for name, each in made.items() if name not in needed},
    )


def invalid(schema: Schema, parts: dict[str, Schema]) -> st.SearchStrategy[Any]:
    """Values that the schema forbids: an allowed one in which one place holds anything, or anything at all."""
    judge = jsonschema.Draft202012Validator({**schema, "components": {"schemas": parts}})
    return (valid(schema, parts).flatmap(spoilt) | ANYTHING).filter(lambda value: not judge.is_valid(value))


def spoilt(value: Any) -> st.SearchStrategy[Any]:
    """The value with one place replaced, left out or added, at any depth."""
    ways: list[st.SearchStrategy[Any]] = [ANYTHING]
    if isinstance(value, dict):
        ways.append(st.builds(lambda name, held: {**value, name: held}, st.text(max_size=8), ANYTHING))
        ways += [st.just({other: held for other, held in value.items() if other != name}) for name in value]
        ways += [st.builds(_replaced, st.just(value), st.just(name), spoilt(held)) for name, held in value.items()]
    if isinstance(value, list):
        ways += [st.builds(_replaced, st.just(value), st.just(at), spoilt(held)) for at, held in enumerate(value)]
    return st.one_of(ways)


def _replaced(value: Any, place: Any, held: Any) -> Any:
    made = value.copy()
    made[place] = held
    return made


def conforms(answer: Any, operation: dict[str, Any], parts: dict[str, Schema]) -> None:
    """The status of a response is declared, its type is that of the status, and its body is valid against the schema there."""
    declared = operation["responses"]
    assert str(answer.status_code) in declared, (answer.status_code, answer.text[:500])
    content = declared[str(answer.status_code)]["content"]
    kind = answer.headers["content-type"].partition(";")[0]
    assert kind in content, kind
    jsonschema.validate(answer.json(), {**content[kind]["schema"], "components": {"schemas": parts}})
