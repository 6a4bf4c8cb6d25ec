"""Hydra and OmegaConf: references, overrides, files that build on others; what they stand for, and edits where they are written."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from pace import within

from diagnose.adapters import config_reader
from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.formats.hydra_overrides import parse_override
from diagnose.adapters.formats.settings import ConfigSource, Settings
from diagnose.adapters.job.interpolation import interpolate, referenced_key
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.translate.config_part import Part
from diagnose.facts import Fact, FactBook, Value, Witness, typed
from diagnose.parse.model.reading import Reading
from diagnose.plan.edits import knob_edits
from diagnose.plan.patch import patching

HEAD = "policy:\n  model_name: a/b\n  max_total_sequence_length: 4096\n"


def read(*files: tuple[str, str]) -> Settings:
    return config_reader.read([ConfigSource(name, text.encode()) for name, text in files], Reading(), FactBook())


def value(told: Settings, knob: str) -> Value:
    return FactBook(told.facts).value(knob)


def origin(told: Settings, knob: str) -> str | None:
    fact = FactBook(told.facts).fact(knob)
    return None if fact is None else fact.origin


def nemo(**lines: str) -> Settings:
    """A NeMo-RL file with these lines in its policy block."""
    return read(("a.yaml", HEAD + "".join(f"  {key}: {text}\n" for key, text in lines.items())))


def patched(name: str, text: str, changes: Mapping[str, Value]) -> str:
    told = read((name, text))
    edits = knob_edits.edits(told.documents, FactBook(told.facts), changes)
    assert edits is not None
    return patching.texts(told.documents, edits)[name]


def leaf_of(key: str, text: str, start: int = 0) -> Leaf:
    return Leaf(key, text, text, start, start + len(text), 1, 1)


# -- references


@for_each(
    "written, meant",
    [
        ("${policy.rows}", 8),
        ("${.rows}", 8),
        ("${..policy.rows}", 8),
        ("${policy[rows]}", 8),
        ("${oc.select:policy.rows}", 8),
        ("${oc.select:policy.nowhere, 3}", 3),
        ("${oc.env:NOBODY_SETS_THIS,5}", 5),
        ("'${oc.env:NOBODY_SETS_THIS, ${policy.rows}}'", 8),
        ("${oc.decode:'7'}", 7),
        ("${mul:${policy.rows}, 2}", 16),
        ("${div:${policy.rows},2}", 4),
        ("${max:${policy.rows}, 2}", 8),
        ("${again}", 8),
        ("${policy.nowhere}", None),
        ("${oc.env:NOBODY_SETS_THIS}", None),
        ("${my_own:3}", None),
        ("${policy.${which}}", 8),
        ("${policy.rows", None),
        ("'???'", None),
    ],
)
def test_a_reference_is_what_it_stands_for_and_never_a_guess(written: str, meant: int | None) -> None:
    text = HEAD + f"  rows: 8\n  train_micro_batch_size: {written}\nagain: ${{policy.rows}}\nwhich: rows\n"
    assert value(read(("a.yaml", text)), "train.micro_batch_size") == meant


def test_an_unknown_value_is_not_replaced_by_a_default() -> None:
    """Somebody sets the key, to what we cannot tell: the framework's default is not what holds."""
    text = "actor_rollout_ref:\n  model: {path: a/b}\n  rollout: {n: '${some:thing}', tensor_model_parallel_size: 4}\n"
    told = read(("a.yaml", text))
    assert value(told, "rollout.num_generations") is None
    assert value(told, "rollout.tensor_parallel") == 4


def test_circles_and_chains_end() -> None:
    told = nemo(train_micro_batch_size="${policy.a}", a="${policy.b}", b="${policy.a}")
    assert value(told, "train.micro_batch_size") is None
    deep = {f"k{n}": f"${{policy.k{n + 1}}}" for n in range(200)}
    assert value(nemo(train_micro_batch_size="${policy.k0}", **deep, k200="4"), "train.micro_batch_size") is None


def test_a_bomb_of_references_is_cheap() -> None:
    """Each line doubles the one before: nothing grows beyond a config's own size."""
    lines = {f"k{n}": f"'${{policy.k{n + 1}}}${{policy.k{n + 1}}}'" for n in range(60)}
    with within(5):
        told = nemo(train_micro_batch_size="${policy.k0}", **lines, k60="1")
        assert value(told, "train.micro_batch_size") is None


def test_a_block_that_is_taken_over_brings_its_keys() -> None:
    text = HEAD + "  dtensor_cfg: ${shared}\nshared:\n  enabled: true\n  tensor_parallel_size: 4\n"
    told = read(("a.yaml", text))
    assert value(told, "parallel.tensor") == 4
    assert value(told, "fsdp.sharding") == "full_shard"


def test_the_command_line_has_its_say_before_references_are_followed() -> None:
    file = ("a.yaml", HEAD + "  rows: 8\n  train_micro_batch_size: ${policy.rows}\n")
    command = ("run.sh", "export LEN=512\nuv run examples/run_sft.py --config a.yaml policy.rows=2 '+policy.x=${oc.env:LEN}'\n")
    assert value(read(file, command), "train.micro_batch_size") == 2


def test_overrides_without_their_command_are_read_and_what_they_lack_is_unknown() -> None:
    """A part of a command as people paste it: the keys show whose they are. Nothing is called without effect for want of a key that may
    stand above, and the defaults of the command do not hold."""
    prefix = "actor_rollout_ref.actor.megatron"
    lines = [f"{prefix}.param_offload=True", f"{prefix}.tensor_model_parallel_size=4", f"{prefix}.expert_model_parallel_size=32"]
    told = read(("train.sh", " \\\n".join(lines) + "\n"))
    assert (value(told, "train.framework"), value(told, "parallel.tensor"), value(told, "parallel.expert")) == ("verl", 4, 32)
    assert value(told, "parallel.world") is None and value(told, "config.ignored_key") is None
    whole = read(("train.sh", f"python -m verl.trainer.main_ppo actor_rollout_ref.model.path=a/b {' '.join(lines)}\n"))
    assert value(whole, "config.ignored_key") is not None
    assert value(read(("train.sh", "trainer.batch_size=4 \\\ntrainer.lr=1e-4\n")), "train.framework") is None


def test_a_variable_counts_as_the_script_sets_it() -> None:
    file = ("a.yaml", HEAD.replace("4096", "${oc.env:LEN,64}"))
    assert value(read(file), "train.max_seq_len") == 64
    assert value(read(file, ("run.sh", "export LEN=512\npython run_sft.py --config a.yaml\n")), "train.max_seq_len") == 512


def test_only_frameworks_that_resolve_references_have_them_resolved() -> None:
    told = read(("a.yaml", "stage: sft\nfinetuning_type: lora\nrows: 4\nper_device_train_batch_size: ${rows}\n"))
    assert value(told, "train.micro_batch_size") is None


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.text("${}ab:.,[]?'\\ 1", max_size=24)), max_size=6))
def test_whatever_stands_there_is_read(pairs: list[tuple[str, str]]) -> None:
    """References are a small language written by strangers: nothing of it raises, nothing of it stays half replaced."""
    leaves = tuple(leaf_of(key, text)._replace(key=key) for key, text in pairs)
    part = Part("a.yaml", framework_tables.table("nemo_rl"), "yaml", "", leaves)
    (told,) = interpolate([part])
    for leaf in told.leaves:
        assert leaf.text is None or "${" not in leaf.text or "\\" in leaf.text


def test_a_whole_reference_is_told_from_more() -> None:
    assert referenced_key("${a.b}") == referenced_key("'${a[b]}'") == "a.b"
    assert referenced_key("${.b}") == referenced_key("x${a}") == referenced_key("${mul:a,b}") == ""


# -- overrides


@for_each(
    "written, shape, items",
    [
        ("[q_proj,v_proj]", "list", ("q_proj", "v_proj")),
        ('["a b", c]', "list", ("a b", "c")),
        ("[${a.b}, 1]", "list", ("${a.b}", "1")),
        ("{a:1,b:[x,y]}", "map", ()),
        ("'a,b'", "scalar", ()),
        ("[a", "scalar", ()),
        ("[]", "list", ()),
    ],
)
def test_an_override_is_read_as_hydra_reads_it(written: str, shape: str, items: tuple[str, ...]) -> None:
    first = parse_override(leaf_of("k", written))[0]
    assert (first.shape, first.items) == (shape, items)


def test_a_mapping_is_its_keys_each_in_its_place() -> None:
    text = "{a: 1, b: {c: 'x y', d: null}}"
    found = {leaf.key: leaf for leaf in parse_override(leaf_of("k", text, 10))}
    assert {key: leaf.text for key, leaf in found.items()} == {"k": None, "k.a": "1", "k.b": None, "k.b.c": "x y", "k.b.d": None}
    assert all(text[leaf.start - 10 : leaf.end - 10] == leaf.written for leaf in found.values())


@settings(max_examples=200, deadline=None)
@given(st.text("[]{}:,'\"\\$ ab1()", max_size=60))
def test_any_text_is_an_override(text: str) -> None:
    for leaf in parse_override(leaf_of("k", text)):
        assert text[leaf.start : leaf.end] == leaf.written


def test_overrides_keep_their_signs_and_quotes() -> None:
    text = (
        "python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=8 \\\n"
        "  'actor_rollout_ref.model.target_modules=[q_proj,v_proj]' ++actor_rollout_ref.model.lora_rank=8 \\\n"
        '  +actor_rollout_ref.model.override_config="{attn_implementation: eager}" ~actor_rollout_ref.rollout.n \\\n'
        '  "actor_rollout_ref.actor.fsdp_config={param_offload: True, optimizer_offload: False}"\n'
    )
    told = read(("run.sh", text))
    assert value(told, "lora.targets") == "q_proj,v_proj"
    assert value(told, "lora.rank") == 8
    assert value(told, "model.attention") == "eager"
    assert value(told, "rollout.offload_between_phases") == "params"
    assert origin(told, "rollout.num_generations") == "default"


# -- files that build on others


def test_what_a_file_builds_on_is_said_where_it_is_not_given() -> None:
    text = "defaults:\n  - my_base\n  - _self_\n" + HEAD
    told = read(("a.yaml", text))
    assert ["my_base" in notice.message.en for notice in told.notices if notice.code == "config.not_given"] == [True]
    assert origin(told, "rollout.sleep") is None


def test_the_frameworks_own_configurations_need_not_be_given() -> None:
    text = "defaults:\n  - ppo_trainer\n  - model@actor_rollout_ref.model: hf_model\n  - _self_\nactor_rollout_ref:\n  rollout: {n: 2}\n"
    told = read(("a.yaml", text))
    assert not [notice for notice in told.notices if notice.code == "config.not_given"]
    assert value(told, "rollout.gpu_memory_utilization") == 0.5


@pytest.mark.parametrize(
    ("defaults", "meant"), [("defaults: base.yaml\n", 1), ("defaults: [base, _self_]\n", 1), ("defaults: [_self_, base]\n", 2)]
)
def test_a_file_wins_over_what_it_builds_on(defaults: str, meant: int) -> None:
    mine = ("a.yaml", defaults + HEAD + "  train_micro_batch_size: 1\n")
    base = ("folder/base.yaml", HEAD + "  train_micro_batch_size: 2\n  train_global_batch_size: 64\n")
    for order in ((mine, base), (base, mine)):
        told = read(*order)
        assert value(told, "train.micro_batch_size") == meant
        assert value(told, "train.global_batch") == 64


def test_files_that_build_on_each_other_end() -> None:
    one, other = ("a.yaml", "defaults: b.yaml\n" + HEAD), ("b.yaml", "defaults: a.yaml\n" + HEAD)
    assert value(read(one, other), "train.max_seq_len") == 4096


# -- what decides, over files and command line


def test_a_switch_on_the_command_line_decides_over_a_key_of_the_file() -> None:
    """Tokens per card count only where use_dynamic_bsz says so, wherever that is said."""
    file = "actor_rollout_ref:\n  model: {path: a/b}\n  actor:\n    ppo_micro_batch_size_per_gpu: 4\n    ppo_max_token_len_per_gpu: 9000\n"
    assert value(read(("a.yaml", file)), "train.token_budget") is None
    assert value(read(("a.yaml", file)), "train.micro_batch_size") == 4
    command = ("run.sh", "python -m verl.trainer.main_ppo --config-name=a actor_rollout_ref.actor.use_dynamic_bsz=True\n")
    told = read(("a.yaml", file), command)
    assert value(told, "train.token_budget") == 9000
    assert value(told, "train.micro_batch_size") is None


def test_a_global_micro_batch_is_shared_out() -> None:
    text = (
        "python -m verl.trainer.main_ppo algorithm.adv_estimator=gae data.train_batch_size=8 trainer.nnodes=2 \\\n"
        "  actor_rollout_ref.actor.ppo_micro_batch_size=64 actor_rollout_ref.actor.ulysses_sequence_parallel_size=2\n"
    )
    told = read(("run.sh", text))
    fact = FactBook(told.facts).fact("train.micro_batch_size")
    assert fact is not None
    assert (fact.value, fact.witness.text) == (8, "64 * 2 / 8 / 2")


@for_each(
    "lines, meant",
    [
        (("actor_rollout_ref.actor.use_kl_loss=False", "actor_rollout_ref.ref.fsdp_config.param_offload=True"), "none"),
        (("actor_rollout_ref.actor.use_kl_loss=True",), "offload"),
        (("actor_rollout_ref.actor.use_kl_loss=True", "actor_rollout_ref.actor.strategy=megatron"), "copy"),
        (("actor_rollout_ref.actor.use_kl_loss=True", "actor_rollout_ref.ref.fsdp_config.param_offload=True"), "offload"),
        (("algorithm.use_kl_in_reward=True", "actor_rollout_ref.model.lora_rank=16"), "adapter"),
    ],
)
def test_a_reference_model_is_there_only_where_it_is_asked_for(lines: tuple[str, ...], meant: str) -> None:
    told = read(("run.sh", f"python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=8 {' '.join(lines)}\n"))
    assert value(told, "train.ref_model") == meant


def test_the_default_is_that_of_the_release() -> None:
    """256 sequences since 0.9.0, 1024 before; nothing where the release is unknown."""
    text = b"actor_rollout_ref:\n  model: {path: a/b}\nalgorithm: {adv_estimator: grpo}\n"
    found = {}
    for release in ("0.8.0", "0.9.0", ""):
        book = FactBook(config_reader.read([], Reading(), FactBook()).facts)
        if release:
            book = book.learn([Fact("version.verl", typed("version.verl", release), "given", Witness("option"))])
        found[release] = FactBook(config_reader.read([ConfigSource("a.yaml", text)], Reading(), book).facts).value("rollout.max_num_seqs")
    assert found == {"0.8.0": 1024, "0.9.0": 256, "": None}


def test_keys_that_turn_nothing_tell_the_release() -> None:
    """Options come and go: where no log names the release, what a command uses bounds it."""
    assert str(framework_tables.possible_releases(framework_tables.table("openrlhf"), None, ["async_train", "perf"]).low) == "0.8.0"
    assert str(framework_tables.possible_releases(framework_tables.table("openrlhf"), None, ["async_train", "perf"]).high) == "0.10.1.post2"
    assert str(framework_tables.possible_releases(framework_tables.table("verl"), None, ["trainer.val_before_train"]).low) == "0.4.0"


def test_an_added_key_tells_no_release() -> None:
    """`+key` is what a configuration does not hold: it may be older than the key."""
    lines = "python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=8"
    assert origin(read(("run.sh", f"{lines} trainer.val_before_train=False\n")), "train.gradient_checkpointing") == "default"
    assert origin(read(("run.sh", f"{lines} +trainer.val_before_train=False\n")), "train.gradient_checkpointing") is None


def test_an_entry_point_reads_its_own_keys() -> None:
    """The two SFT trainers and the PPO trainer share the package, not the keys: an edit adds the one that is read."""
    for module, key in (("fsdp_sft_trainer", "model.fsdp_config.model_dtype"), ("sft_trainer", "engine.model_dtype")):
        text = f"torchrun --nproc_per_node=2 -m verl.trainer.{module} data.max_length=64 data.train_batch_size=8\n"
        assert f" {key}=bf16" in patched("run.sh", text, {"train.load_dtype": "bf16"})


def test_two_processes_of_a_launcher_are_two_cards() -> None:
    """train_ppo without Ray has no cards per role; the Ray options' defaults are not its own."""
    told = read(("run.sh", "deepspeed --num_gpus 2 --module openrlhf.cli.train_ppo --pretrain a/b --reward_pretrain a/c\n"))
    assert value(told, "actor.gpus") is None
    assert value(told, "parallel.world") == 2


# -- edits


def test_an_edit_of_a_reference_goes_to_what_it_names() -> None:
    text = "rows: 8  # of everything\n" + HEAD + "  train_micro_batch_size: ${rows}\n"
    assert patched("a.yaml", text, {"train.micro_batch_size": 2}) == text.replace("rows: 8", "rows: 2")


def test_an_edit_of_a_shared_reference_stays_where_it_is() -> None:
    """The other key that refers to it is not meant."""
    text = "rows: 8\n" + HEAD + "  train_micro_batch_size: ${rows}\n  logprob_batch_size: ${rows}\n"
    assert patched("a.yaml", text, {"train.micro_batch_size": 2}) == text.replace(
        "train_micro_batch_size: ${rows}", "train_micro_batch_size: 2"
    )
    own = HEAD + "  train_micro_batch_size: 8\n  logprob_batch_size: ${policy.train_micro_batch_size}\n"
    assert patched("a.yaml", own, {"rollout.logprob_batch": 2}) == own.replace("${policy.train_micro_batch_size}", "2")


@for_each(
    "override",
    [
        "data.max_response_length=512",
        "'data.max_response_length=512'",
        '"data.max_response_length=512"',
        "++data.max_response_length='512'",
    ],
)
def test_an_override_is_edited_in_its_quotes(override: str) -> None:
    text = f"python -m verl.trainer.main_ppo \\\n  algorithm.adv_estimator=grpo \\\n  {override} \\\n  data.train_batch_size=8  \nwait\n"
    new = patched("run.sh", text, {"rollout.completion_len": 256})
    assert value(read(("run.sh", new)), "rollout.completion_len") == 256
    assert new.replace("256", "512") in (text, text.replace("'512'", "512"))


def test_a_new_override_stands_beside_its_kin() -> None:
    text = "python -m verl.trainer.main_ppo \\\n    'data.train_batch_size=8' \\\n    actor_rollout_ref.model.path=a/b\n"
    new = patched("run.sh", text, {"rollout.gpu_memory_utilization": 0.4})
    added = [line for line in new.splitlines() if line not in text.splitlines()]
    assert [line.rstrip(" \\") for line in added] == ["    actor_rollout_ref.rollout.gpu_memory_utilization=0.4"]
    assert value(read(("run.sh", new)), "rollout.gpu_memory_utilization") == 0.4


def test_a_key_outside_the_shipped_configuration_is_added_with_its_sign() -> None:
    text = "python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=8\n"
    assert "++actor_rollout_ref.actor.fsdp_config.model_dtype=bf16" in patched("run.sh", text, {"train.load_dtype": "bf16"})


def test_a_key_inside_a_mapping_of_an_override_is_edited_there() -> None:
    text = "uv run examples/run_sft.py 'policy={train_micro_batch_size: 8, model_name: a/b}' cluster.gpus_per_node=8\n"
    assert patched("run.sh", text, {"train.micro_batch_size": 2}) == text.replace("8,", "2,")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(["trainer.nnodes=1", "'data.shuffle=true'", "+x.y=[1,2]", 'trainer.logger=\'["a","b"]\'', "~z"]), max_size=4),
    st.integers(1, 64),
    st.sampled_from([" ", " \\\n    "]),
)
def test_neighbours_of_an_override_do_not_move(others: list[str], rows: int, gap: str) -> None:
    words = ["algorithm.adv_estimator=grpo", *others, "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=128", *others]
    text = f"python3 -m verl.trainer.main_ppo{gap}{gap.join(words)}\n"
    assert patched("run.sh", text, {"train.micro_batch_size": rows}) == text.replace("=128", f"={rows}")


def test_overrides_that_a_comment_cuts_off_are_said() -> None:
    """To a shell they are the name of another program: the trainer never had them."""
    cut = "python3 -m verl.trainer.main_ppo data.train_batch_size=64 \\\n  # trainer.nnodes=2 \\\n  actor_rollout_ref.rollout.n=5 $@\n"
    told = config_reader.read([ConfigSource("run.sh", cut.encode())], Reading(), FactBook())
    book = FactBook(told.facts)
    assert (book.value("rollout.batch"), book.value("rollout.num_generations")) == (64, 1)
    assert book.value("config.ignored_key") == "actor_rollout_ref.rollout.n"
    assert [one.code for one in told.notices] == ["config.cut_off"]


def test_overrides_alone_are_a_list_of_them() -> None:
    """As people paste them: one to a line, without the program."""
    told = config_reader.read([ConfigSource("o", b"actor_rollout_ref.rollout.n=5\ndata.train_batch_size=64\n")], Reading(), FactBook())
    book = FactBook(told.facts)
    assert [book.value(name) for name in ("train.framework", "rollout.num_generations", "rollout.batch")] == ["verl", 5, 64]


def test_what_an_added_key_needs_is_added_with_the_same_sign() -> None:
    """Megatron's recomputation is three keys, none of which the configuration of an early release holds; FSDP's keys do nothing there."""
    text = "python -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer actor_rollout_ref.model.path=a/b\n"
    edited = patched("run.sh", text, {"train.gradient_checkpointing": "enabled", "parallel.context": 2})
    block = "++actor_rollout_ref.actor.megatron.override_transformer_config.recompute"
    assert all(f"{block}_{rest}" in edited for rest in ("granularity=full", "method=uniform", "num_layers=1"))
    assert "megatron.context_parallel_size=2" in edited and "ulysses" not in edited


def test_rows_that_cannot_be_shared_out_are_unknown() -> None:
    """Two rows over eight cards: no card has none, so something else ran than what is written."""
    held = read(("run.sh", "python -m verl.trainer.main_ppo actor_rollout_ref.actor.ppo_micro_batch_size=2 trainer.n_gpus_per_node=8\n"))
    assert value(held, "train.micro_batch_size") is None
