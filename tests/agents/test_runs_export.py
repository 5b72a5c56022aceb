"""Run history as a file: the list's filters, no formula, every digit, and what is read back is what was there."""

import csv
import io
import json
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from agents.models import Agent
from agents.views.exports import FIELDS
from tests.agents import rows

pytestmark = pytest.mark.django_db

NAMES = [
    "=cmd|'/C calc'!A0", "+1+1", "@SUM(A1)", "\t=1", "\r=2+2", "-2+3+cmd|' /C calc'!A0", '"a","b"', "two\nlines", "лист 📣",
]  # fmt: skip


@pytest.fixture
def own() -> Agent:
    return rows.agent(rows.owner(), "Scout")


def exported(client: Client, query: str) -> str:
    response = client.get(f"/runs/export/?{query}")
    assert response.status_code == 200 and "attachment" in response["Content-Disposition"]
    return b"".join(response.streaming_content).decode()


def read(text: str) -> list[dict[str, str]]:
    assert text.startswith("\ufeff")
    return list(csv.DictReader(io.StringIO(text[1:], newline="")))


def test_names_never_become_formulas_and_amounts_stay_numbers(own: Agent, client: Client) -> None:
    for name in NAMES:
        rows.run(own, skill_name=name, status="succeeded", cost=Decimal("0.000000000042"))
    client.force_login(own.owner)
    found = read(exported(client, "format=csv"))
    assert [row["skill_name"].removeprefix("'") for row in found] == NAMES[::-1]
    assert not any(row["skill_name"].startswith(("=", "+", "-", "@", "\t", "\r")) for row in found)
    assert sum(Decimal(row["cost"]) for row in found) == len(NAMES) * Decimal("0.000000000042")
    lines = [json.loads(line) for line in exported(client, "format=jsonl").splitlines()]
    assert [line["skill_name"] for line in lines] == NAMES[::-1] and tuple(lines[0]) == FIELDS


def test_the_filters_are_those_of_the_list(own: Agent, client: Client, django_assert_max_num_queries: Any) -> None:
    for number in range(40):
        rows.run(own, status="failed" if number % 4 else "succeeded")
    rows.run(rows.agent(rows.owner("bob"), "Other"), status="failed")
    client.force_login(own.owner)
    with django_assert_max_num_queries(4):
        assert len(read(exported(client, "status=failed&format=csv"))) == 30
    assert read(exported(client, "agent=other")) == []
    assert "/runs/export/?status=failed&amp;format=csv" in client.get("/runs/?status=failed").content.decode()
    for query in ("format=xml", "status=lost", "skill=%00", "from=tomorrow"):
        assert client.get(f"/runs/export/?{query}").status_code == 400
    client.logout()
    assert client.get("/runs/export/").status_code == 302
