"""X03, P44: sums at every grouping equal those of a second calculator, in fractions, to the last digit."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.engine.costs import Price, Tier, cost, read_usage
from agents.models import Agent, Budget, Reservation, Run, Step
from agents.models.allowances import overview
from agents.models.costs import GROUPS, total
from tests.agents import rows

ZONES = ["UTC", "Europe/Berlin", "America/Los_Angeles", "Asia/Kolkata", "Pacific/Apia", "America/Havana"]
# Around the nights when clocks change, to the second.
NIGHTS = [datetime(2026, 3, 8, tzinfo=UTC), datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)]
MODELS = ["openai/gpt-4o", "openai/gpt-4o-mini", ""]
SKILLS = ["", f"31123:{'a' * 64}:one", f"31123:{'b' * 64}:two"]
KINDS = ["manual", "cron", "webhook"]
PICO = 10**12


@st.composite
def calls(draw: st.DrawFn) -> dict[str, Any]:
    """One attempt: when, whose, of what, and what it cost in pico-dollars (None: nobody knows)."""
    at = draw(st.sampled_from(NIGHTS)) + timedelta(seconds=draw(st.integers(-100_000, 100_000)))
    return {
        "at": at,
        "run": draw(st.integers(0, 17)),
        "asked": draw(st.sampled_from(MODELS[:2])),
        "served": draw(st.sampled_from(MODELS)),
        "state": draw(st.sampled_from(["done", "failed", "unknown", "refused", "running"])),
        "pico": draw(st.one_of(st.none(), st.integers(0, 10**15), st.sampled_from([1, 40_000_000, 1_615_000_000]))),
        "later": draw(st.one_of(st.none(), st.integers(0, 10**14))),
        "tokens": draw(st.tuples(*[st.integers(0, 10**6)] * 4)),
    }


@pytest.fixture
def runs(db: None) -> list[Run]:
    """Two agents, each with every skill and every kind of trigger."""
    owner = rows.owner()
    agents = [rows.agent(owner, "One"), rows.agent(owner, "Two")]
    return [
        rows.run(agent, skill_address=skill, skill_name=skill[-3:], trigger_kind=kind)
        for agent in agents
        for skill in SKILLS
        for kind in KINDS
    ]


def stored(made: Iterable[dict[str, Any]], runs: list[Run]) -> None:
    Step.objects.all().delete()
    names = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
    steps = [
        Step(
            run=runs[one["run"]],
            position=position,
            kind="model",
            state=one["state"],
            name=one["asked"],
            served_model=one["served"],
            started_at=one["at"],
            cost=None if one["pico"] is None else Decimal(one["pico"]) / PICO,
            repriced=None if one["later"] is None else Decimal(one["later"]) / PICO,
            **dict(zip(names, one["tokens"], strict=True)),
        )
        for position, one in enumerate(made)
    ]
    Step.objects.bulk_create(steps)
    Reservation.objects.bulk_create(
        Reservation(
            step=step,
            agent=step.run.agent,
            skill_address=step.run.skill_address,
            triggered=step.run.trigger_kind != "manual",
            amount=Decimal("0.5"),
            settled=step.cost,
            at=step.started_at,
        )
        for step in steps
    )


def key(group: str, one: dict[str, Any], runs: list[Run], zone: str) -> str:
    """The second calculator's own idea of what a call belongs to."""
    run = runs[one["run"]]
    return {
        "day": one["at"].astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d"),
        "skill": run.skill_address,
        "agent": run.agent.slug,
        "model": one["served"] or one["asked"],
        "trigger": run.trigger_kind,
    }[group]


def amount(one: dict[str, Any], later: bool) -> Fraction | None:
    pico = one["later"] if later and one["later"] is not None else one["pico"]
    return None if pico is None else Fraction(pico, PICO)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=st.lists(calls(), max_size=40), zone=st.sampled_from(ZONES), later=st.booleans())
def test_every_grouping_adds_up_to_the_last_digit(
    runs: list[Run], made: list[dict[str, Any]], zone: str, later: bool
) -> None:
    stored(made, runs)
    counted = [one for one in made if one["state"] in {"done", "failed", "unknown"}]
    whole = sum((amount(one, later) or Fraction(0) for one in counted), Fraction(0))
    for group in GROUPS:
        sums: dict[str, Fraction] = defaultdict(Fraction)
        unknown: dict[str, int] = defaultdict(int)
        for one in counted:
            place = key(group, one, runs, zone)
            sums[place] += amount(one, later) or 0
            unknown[place] += amount(one, later) is None
        found = Step.objects.of(runs[0].agent.owner).costs_by(group, ZoneInfo(zone), repriced=later)
        assert {row.key: Fraction(row.cost) for row in found} == sums, group
        assert {row.key: row.unknown for row in found} == unknown, group
        together = total(found)
        assert Fraction(together.cost) == whole, group
        assert Fraction(together.charged) == sum((amount(one, False) or 0 for one in counted), Fraction(0)), group
        assert (together.attempts, together.tokens) == (len(counted), sum(sum(one["tokens"]) for one in counted))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=st.lists(calls(), max_size=30), zone=st.sampled_from(ZONES), period=st.sampled_from(["day", "month"]))
def test_every_budget_counts_what_a_second_calculator_counts(
    runs: list[Run], made: list[dict[str, Any]], zone: str, period: str
) -> None:
    stored(made, runs)
    agents: list[Agent] = [runs[0].agent, runs[9].agent]
    for agent in agents:
        agent.owner.time_zone = zone
        for scope, target in (("agent", ""), ("skill", SKILLS[1]), ("trigger", SKILLS[1])):
            Budget.objects.get_or_create(agent=agent, scope=scope, target=target, period=period, limit=1)
    now = NIGHTS[1] + timedelta(hours=20)
    style = "%Y-%m-%d" if period == "day" else "%Y-%m"
    current = now.astimezone(ZoneInfo(zone)).strftime(style)
    for budget, allowance in overview(agents, now):
        if budget.period != period:
            continue
        expected = Fraction(0)
        for one in made:
            run = runs[one["run"]]
            local = one["at"].astimezone(ZoneInfo(zone)).strftime(style)
            same = run.agent_id == budget.agent_id and local >= current
            same = same and (budget.scope == "agent" or run.skill_address == budget.target)
            same = same and (budget.scope != "trigger" or run.trigger_kind != "manual")
            expected += (Fraction(1, 2) if one["pico"] is None else Fraction(one["pico"], PICO)) if same else 0
        assert Fraction(allowance.used) == expected, allowance.name


per_token = st.integers(0, 10**8).map(lambda pico: Decimal(pico) / PICO)


@settings(max_examples=1_000, deadline=None)
@given(
    prompt=st.integers(0, 10**6),
    completion=st.integers(0, 10**6),
    cached=st.integers(0, 2 * 10**6),
    reasoning=st.integers(0, 2 * 10**6),
    prices=st.tuples(*[per_token] * 7),
    above=st.integers(1, 10**6),
)
def test_a_thousand_usages_cost_what_a_second_calculator_says(
    prompt: int, completion: int, cached: int, reasoning: int, prices: tuple[Decimal, ...], above: int
) -> None:
    """P44, L01: cached and reasoning tokens once, also where a provider's numbers contradict each other."""
    tier = Tier(above, prices[4], prices[5], prices[6])
    price = Price(prices[0], prices[1], prices[2], prices[3], "x", (tier,))
    raw = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }
    long = prompt > above
    rates = [Fraction(one) for one in (prices[4:7] if long else prices[0:3])]
    thinking = rates[1] if long else Fraction(prices[3])
    seen, thought = min(cached, prompt), min(reasoning, completion)
    expected = (prompt - seen) * rates[0] + seen * rates[2] + (completion - thought) * rates[1] + thought * thinking
    usage = read_usage(raw)
    assert Fraction(cost(usage, price) or 0) == expected
    assert usage.consistent == (cached <= prompt and reasoning <= completion)
