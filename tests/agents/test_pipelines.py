"""Skills that start each other, drawn as one pipeline with one cost."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents.models import Agent, Trigger
from tests.agents import rows

pytestmark = pytest.mark.django_db

KEY = "a" * 64


@pytest.fixture
def own() -> Agent:
    return rows.agent(rows.owner(), "Scout")


def chain(own: Agent, name: str, source: str, on: str = "succeeded") -> Trigger:
    tags = [["trigger", "chain"], ["source", f"31123:{KEY}:{source}"], ["on", on]]
    return Trigger.objects.create(
        agent=own, address=f"31123:{KEY}:{name}", event_id="b" * 64, kind="chain", tags=tags, armed_at=0
    )


def test_a_pipeline_is_drawn_with_what_its_passages_cost(
    own: Agent, client: Client, django_assert_max_num_queries: Any
) -> None:
    for name, source in (("sum", "fetch"), ("post", "sum"), ("alarm", "sum")):
        chain(own, name, source, "failed" if name == "alarm" else "succeeded")
    now = timezone.now()
    for number in range(3):
        at = now - timedelta(minutes=number)
        parent = None
        for name in ("fetch", "sum", "post"):
            parent = rows.run(
                own,
                skill_address=f"31123:{KEY}:{name}",
                skill_name=name,
                parent=parent,
                status="succeeded",
                cost=Decimal("0.000001"),
                unknown_costs=int(name == "post"),
                trigger_kind="chain",
            )
            type(parent).objects.filter(pk=parent.pk).update(created_at=at)
    client.force_login(own.owner)
    with django_assert_max_num_queries(12):
        response = client.get("/agents/scout/pipelines/")
    (pipeline,) = response.context["pipelines"]
    assert [(stage.depth, stage.name, stage.when) for stage in pipeline.stages] == [
        (0, "fetch", ""),
        (1, "sum", "succeeds"),
        (2, "alarm", "fails"),
        (2, "post", "succeeds"),
    ]
    assert [(len(one.runs), one.cost, one.unknown) for one in pipeline.passages] == [(3, Decimal("0.000003"), 1)] * 3
    assert "started by hand" in response.content.decode()


def test_without_chains_it_says_what_to_do(own: Agent, client: Client) -> None:
    client.force_login(own.owner)
    assert "Another skill’s end" in client.get("/agents/scout/pipelines/").content.decode()
    client.force_login(rows.owner("bob"))
    assert client.get("/agents/scout/pipelines/").status_code == 404
