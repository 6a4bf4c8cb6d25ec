"""No remedy moves its knob against its own direction, whatever is in effect."""

from __future__ import annotations

from collected import for_each
from workshop import GIB, job, reprice

from diagnose.facts import Value, declared
from diagnose.plan.pricing.candidate_values import candidates
from diagnose.plan.pricing.pricer import Bench
from diagnose.plan.remedies.remedy_rules import Rule, rules
from diagnose.units import Size

COUNTS = (1, 2, 3, 8, 512, 2048, 4096, 50_000_000, 500_000_000)
VALUES: dict[str, tuple[Value, ...]] = {
    "count": COUNTS,
    "ratio": (0.05, 0.5, 0.85, 0.92, 0.95, 0.99),
    "size": tuple(Size.exactly(gib * GIB // 4) for gib in (1, 2, 8)),
}
TURNING = [rule for rule in rules(trial=True) if rule.turns and (entry := declared(rule.turns)) is not None and entry.kind in VALUES]


def amount(value: Value) -> float:
    assert isinstance(value, (int, float, Size))
    return value.bytes if isinstance(value, Size) else value


def tried(rule: Rule, now: Value) -> list[Value]:
    """What the rule would set where its knob is at this value, with figures of a log on both sides of it."""
    assert rule.turns is not None
    figures = job(parallel__world="8", model__hidden_size="4096", rollout__fitting_len="3000", rollout__cache_tokens="150745")
    facts = figures.changed({rule.turns: now})
    return candidates(rule.turns, rule.to, Bench(facts, reprice(facts), reprice))


@for_each("rule", TURNING)
def test_a_remedy_keeps_its_direction(rule: Rule) -> None:
    assert rule.to.goes in ("down", "up"), rule.id
    entry = declared(rule.turns or "")
    assert entry is not None
    for now in VALUES[entry.kind]:
        for value in tried(rule, now):
            assert (amount(value) < amount(now)) == (rule.to.goes == "down") and amount(value) != amount(now), (rule.id, now, value)


def test_without_a_direction_the_figures_of_a_log_would_be_taken() -> None:
    """A context of 4,096 is not lengthened to the 150,745 tokens that the cache holds."""
    rule = next(rule for rule in TURNING if rule.id == "shorter-context")
    assert tried(rule, 4096) == [3000, 2048, 1024]
    assert 150_745 in tried(rule._replace(to=rule.to._replace(goes="")), 4096)
