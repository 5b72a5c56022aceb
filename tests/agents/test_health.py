"""Machines, owners and operators are told what is away."""

import socket
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from agents import alive
from marketplace.models import Heartbeat, Relay
from tests.agents import rows

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    cache.clear()


@pytest.fixture
def relay_port(settings: Any) -> Any:
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings.RELAY_PORT, settings.EMBEDDED_RELAY = server.getsockname()[1], True
        yield settings.RELAY_PORT


def beat(*roles: str, ago: int = 0) -> None:
    for role in roles:
        Heartbeat.beat(role, "here", timezone.now() - timedelta(seconds=ago))


def test_everything_alive_is_200_and_six_times_ok(client: Client, relay_port: int) -> None:
    beat("worker", "listener")
    response = client.get("/healthz")
    names = {"web", "database", "broker", "worker", "relay", "listener"}
    assert response.status_code == 200 and response.json() == dict.fromkeys(names, "ok")
    assert "no-store" in response["Cache-Control"]


def test_a_silent_worker_is_503_in_words(client: Client, relay_port: int) -> None:
    beat("listener")
    beat("worker", ago=600)
    response = client.get("/healthz")
    assert response.status_code == 503 and response.json()["listener"] == "ok"
    assert "No worker is running" in response.json()["worker"] and "10 min ago" in response.json()["worker"]


def test_one_of_several_workers_is_enough(client: Client, relay_port: int) -> None:
    beat("worker", "listener", ago=600)
    Heartbeat.beat("worker", "there", timezone.now())
    assert client.get("/healthz").json()["worker"] == "ok"


def test_a_database_that_is_away_is_said_and_the_rest_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise OperationalError("secret host name")

    monkeypatch.setattr(alive, "newest_beats", away)
    found = alive.facts(timezone.now())
    assert "does not answer" in found["database"] and "secret" not in str(found) and "unknown" in found["worker"]


def test_a_broker_that_takes_no_connection_is_said(settings: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        settings.CELERY_BROKER_URL = f"redis://:password@127.0.0.1:{port}/0"
        assert alive.broker() == "ok"
    assert "takes no connection" in alive.broker() and "password" not in alive.broker()


def test_a_folder_of_messages_must_be_there(settings: Any, tmp_path: Any) -> None:
    settings.CELERY_BROKER_URL, settings.BROKER_DIR = "filesystem://", tmp_path
    assert "is not there" in alive.broker()
    (tmp_path / "messages").mkdir()
    assert alive.broker() == "ok"


def test_relays_of_others_are_what_the_listener_last_saw(settings: Any) -> None:
    settings.EMBEDDED_RELAY, settings.RELAYS = False, ["wss://one.example", "wss://two.example"]
    assert "one.example (new)" in alive.relay()
    Relay.objects.create(url="wss://two.example", state="live")
    assert alive.relay() == "ok"


def test_signed_in_owners_see_a_banner_and_visitors_do_not(client: Client) -> None:
    assert b"No worker is running" not in client.get("/").content
    client.force_login(rows.owner())
    assert b"No worker is running" in client.get("/agents/").content
    beat("worker", "listener")
    assert b"No worker is running" in client.get("/agents/").content  # looked up every few seconds only
    cache.clear()
    assert b"No worker is running" not in client.get("/agents/").content


def test_the_operators_page_says_what_is_wrong_and_what_to_do(client: Client, relay_port: int) -> None:
    staff = rows.owner("staff")
    staff.is_staff = True
    staff.save()
    client.force_login(staff)
    page = client.get("/operate/").content.decode()
    assert "What is wrong" in page and "celery -A marketplace.celery worker -Q runs" in page
    beat("worker", "listener")
    assert "Everything runs" in client.get("/operate/").content.decode()


def test_the_operators_page_is_not_there_for_others(client: Client) -> None:
    client.force_login(rows.owner())
    assert client.get("/operate/").status_code == 404
    client.logout()
    assert client.get("/operate/").status_code == 302
