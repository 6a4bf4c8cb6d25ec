"""Variables reach the training: exported where that is enough, else told to what starts it elsewhere, in the words of its shell."""

from __future__ import annotations

import json

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep import examples

from diagnose.adapters import config_reader
from diagnose.adapters.formats.settings import ConfigSource, Document, Settings
from diagnose.facts import Fact, FactBook, Value, Witness
from diagnose.parse.model.reading import Reading
from diagnose.plan.edits import env_edits, knob_edits
from diagnose.plan.patch import patching
from diagnose.plan.patch.env_carriers import carriers
from diagnose.plan.remedies.remedy import Edit
from diagnose.units import Version

SEGMENTS: dict[str, Value] = {"alloc.expandable_segments": True}
PPO = "python3 -m openrlhf.cli.train_ppo_ray \\\n   --actor_num_nodes 1 --zero_stage 3\n"
SFT = "python3 -m openrlhf.cli.train_sft --pretrain a/b --zero_stage 3\n"
ON = "expandable_segments:True"
CUDA, GENERAL = "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"


def read(text: str, name: str = "r.sh") -> Settings:
    return config_reader.read([ConfigSource(name, text.encode())], Reading(), FactBook())


def planned(text: str, torch: str | None = None, name: str = "r.sh") -> tuple[tuple[Edit, ...], tuple[Document, ...]]:
    told = read(text, name)
    book = FactBook(told.facts).learn([Fact("version.torch", Version(torch), "log", Witness("log"))] if torch else [])
    return env_edits.edits(SEGMENTS, book, told.documents), told.documents


def edited(text: str, torch: str | None = None, name: str = "r.sh") -> str:
    """The file with the allocator's switch on, which reads back as such."""
    edits, documents = planned(text, torch, name)
    new = patching.texts(documents, edits)[name]
    assert FactBook(read(new, name).facts).value("alloc.expandable_segments") is True, new
    return new


@for_each(
    "before, after",
    [
        pytest.param(None, '{"env_vars": {"@": "+"}}', id="absent"),
        pytest.param('{"working_dir": "."}', '{"env_vars": {"@": "+"}, "working_dir": "."}', id="no variables"),
        pytest.param('{"env_vars": {}}', '{"env_vars": {"@": "+"}}', id="empty"),
        pytest.param('{"env_vars": {"A": "1"}}', '{"env_vars": {"A": "1", "@": "+"}}', id="beside"),
        pytest.param('{"env_vars": {"@": "max_split_size_mb:8"}}', '{"env_vars": {"@": "max_split_size_mb:8,+"}}', id="merged"),
    ],
)
def test_the_workers_of_ray_get_it_in_the_runtime_environment(before: str | None, after: str) -> None:
    """An `export` before `ray job submit` never reaches them."""
    start, option = "#!/bin/bash\nray job submit ", "--runtime-env-json='{}' "
    text = start + (option.format(before.replace("@", CUDA)) if before else "") + f"-- {PPO}"
    assert edited(text) == start + option.format(after.replace("@", CUDA).replace("+", ON)) + f"-- {PPO}"


def test_what_the_script_exports_goes_along_and_stays() -> None:
    text = f"export {CUDA}=max_split_size_mb:128\nray job submit -- {PPO}"
    new = edited(text)
    assert new.startswith(f"export {CUDA}=max_split_size_mb:128\n") and '"max_split_size_mb:128,expandable_segments:True"' in new


def test_a_variable_that_holds_the_json_is_edited_in_its_own_quotes() -> None:
    """As verl's and NeMo's launchers write it: a text over several lines, its quotes escaped."""
    text = f'ENV_JSON="{{\n  \\"env_vars\\": {{\n    \\"A\\": \\"1\\"\n  }}\n}}"\nray job submit --runtime-env-json="$ENV_JSON" -- {PPO}'
    new = edited(text)
    assert f'    \\"A\\": \\"1\\",\n    \\"{CUDA}\\": \\"expandable_segments:True\\"\n' in new
    assert new.replace(f',\n    \\"{CUDA}\\": \\"expandable_segments:True\\"', "") == text


def test_a_file_of_the_runtime_environment_is_named_with_its_key() -> None:
    edits, documents = planned(f"ray job submit --runtime-env=env.yaml -- {PPO}")
    assert edits == (Edit("env.yaml", f"env_vars.{CUDA}", None, "expandable_segments:True"),)
    assert patching.diff(documents, edits) == ""


def test_what_only_the_running_shell_knows_is_named_and_left() -> None:
    text = f'ray job submit --runtime-env-json="$(cat env.json)" -- {PPO}'
    edits, documents = planned(text)
    assert edits == (Edit("r.sh", f"--runtime-env-json env_vars.{CUDA}", None, "expandable_segments:True"),)
    assert patching.texts(documents, edits)["r.sh"] == text


PIECES = [
    "ray ",
    "job ",
    "submit ",
    "--runtime-env-json",
    "=",
    "'",
    '"',
    "{",
    "}",
    '\\"env_vars\\": ',
    '"A": "1"',
    "-- ",
    "python t.py ",
    "srun ",
    "--export=",
    "A=1,",
    "docker run ",
    "-e ",
    "\n",
    "$X",
    "\\\n",
    ",",
    " ",
]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25))
def test_no_script_is_too_odd(pieces: list[str]) -> None:
    """Whatever stands there, splices lie inside the text and nothing raises."""
    text = "".join(pieces)
    for carrier in carriers(text, CUDA, "a:b"):
        assert all(0 <= splice.start <= splice.end <= len(text) for splice in carrier.splices)


NAMES = st.from_regex(r"[A-Z][A-Z_]{0,6}", fullmatch=True)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.dictionaries(NAMES, st.from_regex(r"[\w:/., -]{1,9}", fullmatch=True), max_size=4),
    st.dictionaries(st.sampled_from(["working_dir", "pip", "excludes"]), st.sampled_from(["/a", ["b"], {"c": 1}]), max_size=3),
    st.sampled_from([None, 2]),
    st.booleans(),
)
def test_whatever_json_stands_there_keeps_all_it_says(
    variables: dict[str, str], others: dict[str, object], indent: int | None, escaped: bool
) -> None:
    """The runtime environment after the edit is the one before it and the variable; nothing outside the word moves."""
    stands: dict[str, object] = {**others, **({"env_vars": variables} if variables else {})}
    said = json.dumps(stands, indent=indent)
    word = '"' + said.replace('"', '\\"') + '"' if escaped else f"'{said}'"
    text = f"set -x\nray job submit --runtime-env-json={word} \\\n  -- {PPO}"
    new = edited(text)
    start, end = text.index(word), text.index(word) + len(word)
    assert new.startswith(text[:start]) and new.endswith(text[end:])
    now = new[start + 1 : len(new) - (len(text) - end) - 1]
    assert json.loads(now.replace('\\"', '"') if escaped else now) == {
        **others,
        "env_vars": {**variables, CUDA: "expandable_segments:True"},
    }


@for_each(
    "before, after",
    [
        pytest.param("set -e\nsrun ", "export @=+\nset -e\nsrun ", id="srun hands all on"),
        pytest.param("set -e\nsrun --export=ALL,A=1 ", "export @=+\nset -e\nsrun --export=ALL,A=1 ", id="all"),
        pytest.param("set -e\nsrun --export=A=1 ", "export @=+\nset -e\nsrun --export=A=1,@ ", id="some"),
        pytest.param("set -e\nsrun --export=NONE ", "export @=+\nset -e\nsrun --export=@ ", id="none"),
        pytest.param("set -e\ndocker run -e A=1 img ", "set -e\ndocker run -e @=+ -e A=1 img ", id="docker"),
        pytest.param(
            "set -e\ndocker run -e @=max_split_size_mb:8 img ", "set -e\ndocker run -e @=max_split_size_mb:8,+ img ", id="docker has it"
        ),
        pytest.param("set -e\nmpirun -x A -np 2 ", "set -e\nmpirun -x @=+ -x A -np 2 ", id="mpi"),
    ],
)
def test_what_hands_variables_on_is_told(before: str, after: str) -> None:
    assert edited(before.replace("@", CUDA) + SFT) == after.replace("@", CUDA).replace("+", ON) + SFT


POD = """apiVersion: v1
kind: Pod
spec:
  containers:
    - name: t
      env:
        - name: A
          value: "1"   # mine
      command: ["python3", "train.py", "--output_dir", "o", "--model_name_or_path", "a/b", "--per_device_train_batch_size", "2"]
"""


@pytest.mark.parametrize("flow", [False, True])
def test_a_container_of_a_manifest_gets_another_variable(flow: bool) -> None:
    text = POD.replace('- name: A\n          value: "1" ', '- {name: A, value: "1"} ') if flow else POD
    said = (
        f'- {{name: {CUDA}, value: "expandable_segments:True"}}' if flow else f'- name: {CUDA}\n          value: "expandable_segments:True"'
    )
    assert edited(text, name="pod.yaml") == text.replace("# mine\n", f"# mine\n        {said}\n")


@pytest.mark.parametrize(
    ("torch", "changed"), [pytest.param(None, (CUDA, GENERAL), id="unknown"), ("2.6.0", (CUDA,)), ("2.10.0", (GENERAL,))]
)
def test_of_two_names_the_one_that_counts_is_edited(torch: str | None, changed: tuple[str, ...]) -> None:
    """From 2.10 the general name wins, before it does nothing: where the release is unknown both are, each keeping what it says."""
    text = f"export {CUDA}=max_split_size_mb:128\nexport {GENERAL}=max_split_size_mb:64\n{SFT}"
    edits, documents = planned(text, torch)
    new = patching.texts(documents, edits)["r.sh"]
    for name, size in ((CUDA, 128), (GENERAL, 64)):
        more = ",expandable_segments:True" if name in changed else ""
        assert f"export {name}=max_split_size_mb:{size}{more}\n" in new


HF = "python train_sft.py --output_dir o --model_name_or_path a/b --per_device_train_batch_size 2"


@for_each(
    "text, line",
    [
        (f"@echo off\nset A=1\n{HF}\n", f"set {CUDA}=expandable_segments:True\n"),
        (f"@echo off\r\n{HF.replace(' --m', ' ^' + chr(13) + chr(10) + ' --m')}\r\n", f"set {CUDA}=expandable_segments:True\r\n"),
        (HF.replace(" --m", " `\n --m") + "\n", f'$env:{CUDA} = "expandable_segments:True"\n'),
        (f"$n = 2\n{HF}\n", f'$env:{CUDA} = "expandable_segments:True"\n'),
        (f"#!/bin/bash\n{HF}\n", f"export {CUDA}=expandable_segments:True\n"),
    ],
)
def test_each_shell_is_spoken_to_in_its_own_words(text: str, line: str) -> None:
    assert edited(text).replace(line, "") == text


def test_the_shell_of_windows_has_no_single_quotes() -> None:
    text = f"@echo off\nset A=1\n{HF.replace('a/b', '%MODEL%')} --deepspeed x\n"
    told = read(text)
    changes: dict[str, Value] = {"model.path": "C:/my models/a"}
    made = knob_edits.edits(told.documents, FactBook(told.facts), changes)
    assert made and made[0].to == '"C:/my models/a"'
