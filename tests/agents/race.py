"""Many threads that fire triggers at the same moment; run as a process, on the database named by DATABASE_URL."""

import os
import threading
from collections.abc import Callable
from typing import Any

import django


def in_threads(count: int, work: Callable[[int], Any]) -> None:
    """All at once, each with a connection of its own; the first error is raised."""
    from django.db import connection

    start, errors = threading.Barrier(count), []

    def one(number: int) -> None:
        try:
            start.wait(10)
            work(number)
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    if errors:
        raise errors[0]


def race() -> None:
    """Eight deliverers of one event make one run; eight events with room for three make three."""
    from agents import dispatch
    from agents.models import Run
    from marketplace.protocol.triggers import Occasion
    from tests.agents.world import AT, NOW, happened, make_agent, make_trigger, note

    agent = make_agent()
    trigger, event = make_trigger(agent, "same"), note()
    in_threads(8, lambda _: dispatch.runs_for(happened(event), NOW))
    assert Run.objects.filter(occasion_key=event.id).count() == 1
    Run.objects.all().delete()
    trigger.delete()
    triggers = [make_trigger(agent, f"t{number}") for number in range(8)]

    def fire(number: int) -> None:
        dispatch.runs_for(Occasion("nostr-subscription", f"k{number}", AT, event=note()), NOW, [triggers[number].pk])

    in_threads(8, fire)
    assert Run.objects.filter(status="queued").count() == 3
    assert {run.reason for run in Run.objects.filter(status="suppressed")} == {"concurrency"}
    assert Run.objects.count() == 8


def main(work: Callable[[], None] = race) -> None:
    """On PostgreSQL in a database of its own, dropped afterwards."""
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection, connections

    own = f"race_{os.getpid()}"
    postgres = connection.vendor == "postgresql"
    if postgres:
        with connection.cursor() as cursor:
            cursor.execute(f'CREATE DATABASE "{own}"')
        kept, settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"], own
        connections.close_all()
        connection.settings_dict["NAME"] = own
    try:
        call_command("migrate", verbosity=0, interactive=False)
        work()
    finally:
        connections.close_all()
        if postgres:
            connection.settings_dict["NAME"] = kept
            with connection.cursor() as cursor:
                cursor.execute(f'DROP DATABASE IF EXISTS "{own}" WITH (FORCE)')


if __name__ == "__main__":
    django.setup()
    main()
