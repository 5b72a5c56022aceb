"""POST /api/v1/triggers/check: the rules, before anything is published."""

from datetime import datetime
from typing import Any

import pytest
from django.test import Client

from marketplace.models import ApiToken
from tests.agents import rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def token() -> str:
    return ApiToken.issue(rows.owner(), "script", ["read"])


def check(token: str, tags: Any) -> Any:
    headers = {"Authorization": f"Bearer {token}"}
    return Client().post("/api/v1/triggers/check", {"tags": tags}, content_type="application/json", headers=headers)


def test_a_schedule_gives_its_next_times_with_their_offset(token: str) -> None:
    said = check(token, [["d", "x"], ["trigger", "cron"], ["schedule", "0 8 * * *"], ["tz", "Europe/Berlin"]]).json()
    assert said["usable"] and said["problems"] == [] and "Europe/Berlin" in said["words"] and len(said["next"]) == 10
    times = [datetime.fromisoformat(one) for one in said["next"]]
    assert all(one.hour == 8 and one.utcoffset() for one in times) and times == sorted(times)


@pytest.mark.parametrize(
    ("tags", "field"),
    [
        ([], "trigger"),
        ([["trigger"]], "trigger"),
        ([["trigger", "cron"], ["schedule", "0 0 30 2 *"]], "schedule"),
        ([["trigger", "cron"], ["schedule", "60 0 * * *"]], "schedule"),
        ([["trigger", "cron"], ["schedule", "* * * * *"], ["tz", "Mars/Base"]], "tz"),
        ([["trigger", "nostr-subscription"], ["filter", "{}"]], "filter"),
        ([["trigger", "nostr-subscription"], ["filter", '{"kinds":[1],"x":1}']], "filter"),
        ([["trigger", "chain"], ["source", "nonsense"]], "source"),
        ([["trigger", "webhook"], ["param", "a b"]], "param"),
        ([["trigger", "pigeon"]], "trigger"),
        ([["trigger", "cron"], ["schedule", "* * * * *"], ["action", "shout"]], "action"),
        ([["trigger", "\x00\ud800"]], "trigger"),
    ],
)
def test_what_is_wrong_names_its_field(token: str, tags: list[list[str]], field: str) -> None:
    said = check(token, tags).json()
    assert not said["usable"] and field in {problem["field"] for problem in said["problems"]} and said["next"] == []


def test_it_is_for_owners_and_takes_only_tags(token: str) -> None:
    assert check("jm_wrong", []).status_code == 401
    assert Client().post("/api/v1/triggers/check", {"tags": []}, content_type="application/json").status_code in {
        401,
        403,
    }
    assert (
        check(token, "x").status_code == 422 == check(token, [[1]]).status_code or check(token, "x").status_code == 400
    )
