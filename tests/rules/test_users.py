"""A user's own remedies: they add to ours or replace them by id, a broken one is a note about the rule, and nothing else suffers."""

from __future__ import annotations

from pathlib import Path

from checkout import ROOT

from diagnose import check, explain

LOG = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.57 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.02 GiB is "
    "free. Including non-PyTorch memory, this process has 78.12 GiB memory in use. Of the allocated memory 71.44 GiB is allocated by "
    "PyTorch, and 5.01 GiB is reserved by PyTorch but unallocated."
)
CONFIG = (
    "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: full\nper_device_train_batch_size: 8\n"
    "gradient_accumulation_steps: 2\ncutoff_len: 8192\nbf16: true\nflash_attn: fa2\noutput_dir: o\ndataset: x\n"
)
OURS = """\
id: ask-the-cluster-team
remedy: ask_the_cluster_team
status: stable
title: {en: Ask the cluster team for a quiet node, zh: 向集群团队申请空闲节点}
turns: none
do: {en: They keep two nodes free for jobs like this., zh: 他们为这类任务预留了两台节点。}
saves: unknown
price: {results: keep, speed: same, effort: flag}
references: [https://example.org/wiki/quiet-nodes]
where: [log.on_card == enabled]
"""
CAUSE = """\
id: our-cluster
cause: unknown
status: stable
title: {en: It ran on our cluster, zh: 运行在我们的集群上}
when: {all: [log.free < 2 GiB]}
accounts_for: log.requested
evidence: {en: "only {log.free} were free", zh: "只剩 {log.free}"}
remedies: [ask_the_cluster_team]
references: [https://example.org/wiki/cluster]
"""


def test_a_users_remedy_is_offered_where_a_cause_calls_for_it(tmp_path: Path) -> None:
    (tmp_path / "remedies").mkdir()
    (tmp_path / "remedies" / "ask-the-cluster-team.yaml").write_text(OURS, encoding="utf-8")
    (tmp_path / "our-cluster.yaml").write_text(CAUSE, encoding="utf-8")
    found = explain(LOG, rules=[tmp_path])
    remedy = next(remedy for remedy in found.outcome.remedies if remedy.id == "ask_the_cluster_team")
    assert remedy.why.en == "They keep two nodes free for jobs like this." and remedy.url == ""
    assert all(other.url for other in found.outcome.remedies if other.rule != "ask-the-cluster-team")
    assert "ask_the_cluster_team" not in [remedy.id for remedy in explain(LOG).outcome.remedies]


def test_a_users_remedy_replaces_ours_by_id(tmp_path: Path) -> None:
    """Whoever must not change the length can say so once, for every job."""
    shipped = ROOT / "rules" / "remedies" / "shorter-sequences.yaml"
    text = shipped.read_text(encoding="utf-8").replace("status: stable", "status: retired")
    (tmp_path / "shorter-sequences.yaml").write_text(text, encoding="utf-8")
    assert "lower_seq_len" in [remedy.id for remedy in check([CONFIG], gpu="A100-80GB").outcome.remedies]
    kept = check([CONFIG], gpu="A100-80GB", rules=[tmp_path])
    assert "lower_seq_len" not in [remedy.id for remedy in kept.outcome.remedies]
    assert kept.outlook is not None and all("lower_seq_len" not in way.remedies for way in kept.outlook.ways)


def test_a_broken_remedy_is_a_note_and_takes_nothing_with_it(tmp_path: Path) -> None:
    """One lacks its price, one compares what does not exist, one tries a value that cannot be read: ours still speak."""
    (tmp_path / "no-price.yaml").write_text(OURS.replace("price: {results: keep, speed: same, effort: flag}\n", ""), encoding="utf-8")
    (tmp_path / "no-fact.yaml").write_text(OURS.replace("log.on_card == enabled", "log.on_card = yes"), encoding="utf-8")
    odd = OURS.replace("turns: none", "turns: train.max_seq_len\nto: [a great deal]").replace("saves: unknown", "saves: ledger")
    (tmp_path / "no-value.yaml").write_text(odd.replace("ask-the-cluster-team", "no-value"), encoding="utf-8")
    found = explain(LOG, configs=[CONFIG], rules=[tmp_path])
    faults = " ".join(fault.en for fault in found.judgement.faults)
    assert "no-price.yaml" in faults and "no-fact.yaml" in faults
    assert [remedy.id for remedy in found.outcome.remedies] == [remedy.id for remedy in explain(LOG, configs=[CONFIG]).outcome.remedies]


def test_a_rule_about_a_fact_that_nobody_makes_is_a_note_and_ours_stays(tmp_path: Path) -> None:
    """A misspelt fact would be unknown for ever: the override would silence our rule without a word."""
    shipped = ROOT / "rules" / "causes" / "fragmented-reserve.yaml"
    text = shipped.read_text(encoding="utf-8").replace("log.requested > log.free", "log.reqested > log.free", 1)
    (tmp_path / "fragmented-reserve.yaml").write_text(text, encoding="utf-8")
    found = explain(LOG, rules=[tmp_path])
    plain = explain(LOG)
    assert [cause.rule for cause in found.judgement.causes] == [cause.rule for cause in plain.judgement.causes]
    said = [notice.message for notice in found.notices if notice.code == "rule"]
    assert len(said) == 1 and "log.requested" in said[0].en and "log.requested" in said[0].zh
    assert not [notice for notice in plain.notices if notice.code == "rule"]
