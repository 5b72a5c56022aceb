"""Comparing two variants of a skill: two runs by hand on the same input, which only read unless their owner says so."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from agents.dispatch import manual
from agents.models import Agent, Comparison
from agents.models.runs import new_run_id
from agents.runner.loading import overrides, prepared
from agents.tools import TOOLS
from marketplace.protocol.skills import SkillSpec
from marketplace.protocol.triggers import delivery_key

SIDES = ("a", "b")


def compare(
    agent: Agent,
    skill: tuple[str, str],
    spec: SkillSpec | None,
    message: str,
    arguments: dict[str, str],
    variants: Sequence[Mapping[str, Any]],
    writes: bool,
    now: datetime,
    key: str,
) -> Comparison:
    """The same key gives the same comparison. `skill` is address and event id, which both runs pin.

    A variant holds what its run sets for itself: template, llm, max_tokens, temperature, seed.
    """
    own = {"agent": agent, "key": delivery_key(key)}
    known = Comparison.objects.filter(**own).first()
    if known is not None:
        return known
    chosen = [variant_of(agent, spec, variant, writes) for variant in variants]
    comparison = new_run_id()
    try:
        with transaction.atomic():
            a, b = (
                manual(agent, *skill, message, arguments, variant, now, f"compare:{comparison}:{side}")
                for side, variant in zip(SIDES, chosen, strict=True)
            )
            return Comparison.objects.create(
                id=comparison, **own, skill_address=skill[0], writes=writes, run_a=a, run_b=b, created_at=now
            )
    except IntegrityError:  # sent twice at one moment
        return Comparison.objects.get(**own)


def variant_of(agent: Agent, spec: SkillSpec | None, variant: Mapping[str, Any], writes: bool) -> dict[str, Any]:
    """What the run overrides: a template only where it is another, and the tools that read where no others may be."""
    kept = {name: value for name, value in variant.items() if value not in (None, "")}
    if "template" in kept and (spec is None or kept["template"] == spec.template):
        del kept["template"]
    if not writes:
        granted = prepared(agent, spec, overrides(kept), triggered=False).granted
        kept["tools"] = [name for name in granted if TOOLS[name].risk == "reads"]
    return kept
