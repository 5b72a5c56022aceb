"""The whole product on PostgreSQL, with Redis and with RabbitMQ: a run by hand and one by an event."""

import os
import secrets
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from kombu import Connection
from websockets.sync.client import connect

from tests import armed
from tests.caller import ToolCaller
from tests.stack import Stack, eventually

pytestmark = [pytest.mark.stack, pytest.mark.postgres]
BROKERS = [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("redis", "amqp")]


def wanted(name: str) -> str:
    url = os.environ.get(name, "")
    if not url:
        pytest.skip(f"{name} is not set")
    return url


@pytest.fixture
def database() -> Iterator[str]:
    """A database of this test's own, dropped after it."""
    import psycopg

    server = wanted("TEST_DATABASE_URL")
    name = f"journeyman_stack_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[str]:
    """Redis in a database apart, RabbitMQ with its queues deleted before and after."""
    url = wanted(f"TEST_{request.param.upper()}_URL")
    if request.param == "redis":
        url = urlsplit(url)._replace(path="/9").geturl()
    forget_queues(url)
    yield url
    forget_queues(url)


def forget_queues(url: str) -> None:
    with Connection(url) as connection:
        for name in ("runs", "tick"):
            with connection.channel() as channel:
                try:
                    channel.queue_delete(name)
                except connection.channel_errors:
                    continue  # never declared


@pytest.mark.parametrize("broker", BROKERS, indirect=True)
def test_it_runs_by_hand_and_by_event_on_a_server_database_and_broker(
    tmp_path: Path, database: str, broker: str
) -> None:
    with ToolCaller("nostr_post") as model:
        environment = {
            "DATABASE_URL": database,
            "CELERY_BROKER_URL": broker,
            "JOURNEYMAN_LLM_BASE_URL": model.url,
            "JOURNEYMAN_LLM_API_KEY": "test",
            "JOURNEYMAN_DEFAULT_LLM": "openai/gpt-4o-mini",
        }
        with Stack(tmp_path, **environment) as stack:
            eventually(40, stack.healthy, "everything is ok")
            assert len(httpx.get(f"{stack.url}/api/v1/skills?limit=50").json()["items"]) == 14
            assert not (tmp_path / "journeyman.sqlite3").exists()
            assert not any((tmp_path / "broker").rglob("*.msg"))
            by_hand(stack, model)
            by_event(stack)


def by_hand(stack: Stack, model: ToolCaller) -> None:
    model.turns = 0
    headers = armed.token(stack)
    body = {"agent": "demo", "message": "Say hello."}
    started = httpx.post(f"{stack.url}/api/v1/runs", json=body, headers=headers)
    assert started.status_code == 201, started.text

    def ended() -> Any:
        run = httpx.get(f"{stack.url}/api/v1/runs/{started.json()['id']}", headers=headers).json()
        return run if run["finished_at"] else None

    run: Any = eventually(20, ended, "the run ends")
    assert (run["status"], run["output"]) == ("succeeded", "It is done.")
    # 100 tokens in and 20 out, at 0.15 and 0.60 dollars a million.
    assert Decimal(run["cost"]) == Decimal("0.000027")
    model.turns = 1


def by_event(stack: Stack) -> None:
    pubkey = armed.arm(stack, "nostr_post")
    with connect(stack.relay) as relay:
        armed.send(relay, armed.call("occasion-1"))
    eventually(20, lambda: [run for run in armed.runs(stack) if run["status"] == "succeeded"], "the run succeeds")
    assert len(armed.runs(stack)) == 1
    assert len(armed.notes(stack, pubkey)) == 1
