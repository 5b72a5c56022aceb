"""Runs and costs for programs: by token or session with CSRF, and clear refusals."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from agents.models import Agent, Run, Step
from marketplace.api import api
from marketplace.models import ApiToken
from tests.agents import rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def own() -> Agent:
    return rows.agent(rows.owner(), "Scout", llm="offline/echo")


@pytest.fixture
def caller(own: Agent) -> Client:
    token = ApiToken.issue(own.owner, "test", ["read", "run"])
    return Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {token}"})


def spent(of: Agent, cost: str | None, at: datetime) -> Run:
    run = rows.run(of, status="succeeded", model="a/b", cost=Decimal(cost or 0), unknown_costs=int(cost is None))
    Step.objects.create(
        run=run, position=1, kind="model", state="done", name="a/b", started_at=at, cost=cost and Decimal(cost)
    )
    return run


def test_a_run_is_started_and_read_with_its_steps(own: Agent, caller: Client) -> None:
    body = {"agent": "scout", "message": "hello", "seed": 3, "key": "once"}
    first = caller.post("/api/v1/runs", body, content_type="application/json")
    again = caller.post("/api/v1/runs", body, content_type="application/json")
    assert first.status_code == 201 and first.json()["id"] == again.json()["id"] == Run.objects.get().pk
    assert first.json()["overrides"] == {"seed": 3} and first.json()["status"] == "queued"
    Step.objects.create(run=Run.objects.get(), position=1, kind="model", name="a/b", started_at=datetime.now(UTC))
    found = caller.get(f"/api/v1/runs/{first.json()['id']}").json()
    assert found["input"]["message"] == "hello" and found["steps"][0]["cost"] is None


@pytest.mark.parametrize("other", [{"message": "bye"}, {"seed": 4}, {"arguments": {"a": "b"}}])
def test_a_key_that_started_another_run_is_a_conflict(own: Agent, caller: Client, other: dict[str, Any]) -> None:
    body = {"agent": "scout", "message": "hello", "seed": 3, "key": "once"}
    first = caller.post("/api/v1/runs", body, content_type="application/json").json()
    answer = caller.post("/api/v1/runs", body | other, content_type="application/json")
    assert answer.status_code == 409 and first["id"] in answer.json()["detail"] and Run.objects.count() == 1


def test_the_list_pages_and_filters_like_the_page(own: Agent, caller: Client) -> None:
    for number in range(5):
        rows.run(own, status="failed" if number % 2 else "succeeded")
    seen, cursor = [], ""
    while True:
        page = caller.get("/api/v1/runs", {"limit": 2, "cursor": cursor}).json()
        seen += [run["id"] for run in page["items"]]
        cursor = page["next"]
        if not cursor:
            break
    assert len(seen) == 5 == len(set(seen))
    assert {run["status"] for run in caller.get("/api/v1/runs?status=failed").json()["items"]} == {"failed"}


def test_costs_have_all_digits_and_add_up(own: Agent, caller: Client) -> None:
    for amount in ("0.00004", "0.1", None, "0.000000000001"):
        spent(own, amount, datetime(2026, 3, 28, 23, 30, tzinfo=UTC))
    for group in ("day", "skill", "agent", "model", "trigger"):
        query = f"group={group}&from=2026-03-29&to=2026-03-29&tz=Europe/Berlin"
        found = caller.get(f"/api/v1/costs?{query}").json()
        assert found["total"] == {
            "cost": "0.100040000001", "charged": "0.100040000001", "assumed": "0",
            "unknown": 1, "calls": 4, "tokens": 0,
        }  # fmt: skip
        assert sum(Decimal(row["cost"]) for row in found["items"]) == Decimal("0.100040000001")
    assert caller.get("/api/v1/costs?from=2026-03-29&to=2026-03-29&tz=UTC").json()["items"] == []


def operations() -> list[tuple[str, str]]:
    found = []
    for path, methods in api.get_openapi_schema()["paths"].items():
        found += [(method, path) for method in methods if method in {"post", "put", "patch", "delete"}]
    return found


def test_there_are_unsafe_operations_to_walk() -> None:
    assert ("post", "/api/v1/runs") in operations() and ("post", "/api/v1/context/preview") in operations()


@pytest.mark.parametrize(("method", "path"), operations())
@pytest.mark.parametrize("kind", ["application/json", "text/plain", "multipart/form-data; boundary=x"])
def test_a_session_without_the_csrf_token_changes_nothing(own: Agent, method: str, path: str, kind: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(own.owner)
    body = json.dumps({"agent": "scout", "message": "hello"})
    assert getattr(client, method)(path, body, content_type=kind).status_code in {401, 403}
    assert getattr(Client(), method)(path, body, content_type=kind).status_code in {401, 403}
    assert not Run.objects.exists()


def test_a_session_with_the_csrf_token_may(own: Agent, settings: Any) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(own.owner)
    client.get("/account/")
    token = client.cookies[settings.CSRF_COOKIE_NAME].value
    body = {"agent": "scout", "message": "hello"}
    response = client.post("/api/v1/runs", body, content_type="application/json", headers={"X-CSRFToken": token})
    assert response.status_code == 201


def test_a_token_does_only_what_its_scopes_say(own: Agent) -> None:
    headers = {"Authorization": f"Bearer {ApiToken.issue(own.owner, 'reader', ['read'])}"}
    body = {"agent": "scout", "message": "hello"}
    assert Client().get("/api/v1/costs", headers=headers).status_code == 200
    refused = Client().post("/api/v1/runs", body, content_type="application/json", headers=headers)
    assert refused.status_code == 403 and "run" in refused.json()["detail"] and not Run.objects.exists()


@pytest.mark.parametrize("sent", ["Bearer", "Bearer x", "Basic eDp5", "Bearer jm_\xff", "jm_x", "Bearer  "])
def test_a_wrong_token_is_401_even_beside_a_session(own: Agent, sent: str) -> None:
    client = Client()
    client.force_login(own.owner)
    assert client.get("/api/v1/runs", headers={"Authorization": sent}).status_code == 401


@pytest.mark.parametrize(
    "query",
    [
        "runs?status=x", "runs?from=2026-02-30", "runs?limit=0", "runs?limit=1000", "runs?cursor=x", "runs?skill=%00",
        "costs?group=x", "costs?tz=Mars", "costs?tz=../../etc", "costs?tz=%00", "costs?from=0001-01-01", "costs?to=x",
        "costs?from=2026-02-01&to=2026-01-01", "costs?from=1900-01-01&to=2026-01-01", "runs/%00", "runs/a'b",
        "runs?model=%ED%A0%80%00",
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_a_clear_4xx(own: Agent, caller: Client, query: str) -> None:
    response = caller.get(f"/api/v1/{query}")
    assert 400 <= response.status_code < 500 and response.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        "", "[]", "null", "{", '{"agent":"scout"}', '{"agent":"gone","message":"x"}', '{"agent":"scout\\u0000"}',
        '{"agent":"scout","message":"\\u0000"}', '{"agent":"scout","message":"\\ud800"}',
        '{"agent":"scout","message":"x","arguments":{"a":"\\ud800"}}',
        '{"agent":"scout","message":"x","key":"\\u0000"}', '{"agent":"scout","message":"nsec1' + "q" * 58 + '"}',
        '{"agent":"scout","message":"x","temperature":NaN}', '{"agent":"scout","message":"x","seed":1e400}',
        '{"agent":"scout","message":"x","max_tokens":' + "9" * 5_000 + "}", "[" * 100_000,
        '{"agent":"scout","skill":"naddr1nope"}', '{"agent":"scout","skill":"31123:' + "a" * 64 + ':gone"}',
    ],
)  # fmt: skip
def test_a_body_that_cannot_be_meant_is_a_clear_4xx(own: Agent, caller: Client, body: str) -> None:
    response = caller.post("/api/v1/runs", body, content_type="application/json")
    assert 400 <= response.status_code < 500 and not Run.objects.exists()
    assert (
        "NaN" not in response.content.decode()
        and "nsec1q" not in response.content.decode()
        and response.json()["detail"]
    )
