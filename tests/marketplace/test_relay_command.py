"""The embedded relay as its own process: keeps events over a restart, ends at SIGTERM, says when its port is taken."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from marketplace import relays
from marketplace.models import Relay, Skill
from marketplace.protocol.filters import Filter
from tests.keys import Keys
from tests.real_relay import LocalRelay
from tests.stack import ROOT, free_port


def start(folder: Path, port: int) -> "subprocess.Popen[str]":
    environment = {**os.environ, "JOURNEYMAN_VAR": str(folder), "RELAY_PORT": str(port)}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    return subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "relay"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: "subprocess.Popen[str]") -> float:
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    process.communicate()
    return time.monotonic() - started


def test_events_survive_a_restart_and_a_taken_port_is_said(tmp_path: Path, keys: Keys, settings: object) -> None:
    port = free_port()
    url = f"ws://127.0.0.1:{port}"
    settings.RELAYS = [url]  # type: ignore[attr-defined]
    event = keys.A.skill("s")
    first = start(tmp_path / "one", port)
    assert first.stdout
    assert url in first.stdout.readline()
    second = start(tmp_path / "two", port)
    _, words = second.communicate(timeout=30)
    assert second.returncode == 1
    assert f"Port {port} is taken" in words
    assert relays.publish(event, [url])[0].ok
    assert end(first) < 4
    again = start(tmp_path / "one", port)
    assert again.stdout
    again.stdout.readline()
    found = relays.fetch(url, [Filter(kinds=frozenset({31123}))])
    assert [kept.id for kept in found.events] == [event.id]
    end(again)


@pytest.mark.django_db(transaction=True)
def test_sync_relays_fills_the_catalogue_from_a_relay(relay: LocalRelay, keys: Keys) -> None:
    relays.publish(keys.A.skill("s"), [relay.url])
    relays.publish(keys.B.adopts(keys.A.address("s")), [relay.url])
    out = io.StringIO()
    call_command("sync_relays", stdout=out)
    assert out.getvalue() == f"{relay.url}: 2 stored\n"
    assert Skill.objects.get().adopters == 1
    row = Relay.objects.get(url=relay.url)
    assert row.received == 2
    assert row.synced_until > 0
    with pytest.raises(CommandError, match="Not read to the end"):
        call_command("sync_relays", "ws://127.0.0.1:9", stdout=io.StringIO())
