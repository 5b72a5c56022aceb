"""Publish the sample world to the site's relays, or take it away again."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from marketplace import ingest, relays, signing
from marketplace.management.samples import ADOPTERS, AUTHORS, SKILLS
from marketplace.models import Skill
from marketplace.protocol import kinds, nostr
from marketplace.protocol.events import Address, Draft, Event

KEYS = "sample-keys.json"
DAY = 86_400


class Command(BaseCommand):
    help = "Sign and publish a dozen sample skills, profiles and adoption lists; --remove deletes them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--remove", action="store_true", help="publish deletions of all of it")

    def handle(self, *args: Any, **options: Any) -> None:
        now = int(timezone.now().timestamp())
        path = settings.VAR_DIR / KEYS
        if options["remove"]:
            if not path.exists():
                raise CommandError("There is no sample world here.")
            events = removal(read_keys(), now)
        elif path.exists():
            self.stdout.write("The sample world is already there.")
            return
        else:
            path.write_text(signing.seal(json.dumps({name: nostr.generate_secret() for name in ADOPTERS})))
            path.chmod(0o600)
            events = world(read_keys(), now)
        untold = self._publish(events, now)
        if options["remove"]:
            if untold:
                raise CommandError(
                    f"The relay did not take {untold} of {len(events)} deletions, so the keys that sign them are kept. "
                    "Start the site and remove the sample world again."
                )
            path.unlink()

    def _publish(self, events: list[Event], now: int) -> int:
        """Tell the relay and our own archive; how many events the relay did not take."""
        untold = 0
        if settings.EMBEDDED_RELAY:
            for event in events:
                for answer in relays.publish(event, [settings.EMBEDDED_RELAY_URL]):
                    if not answer.ok:
                        untold += 1
                        self.stderr.write(f"{answer.url} refused {event.id[:8]}: {answer.message}")
        outcomes = ingest.store([ingest.Incoming(event, settings.EMBEDDED_RELAY_URL) for event in events], now)
        # The listener may have been faster than we: what it stored is a duplicate here.
        refused = [outcome for outcome in outcomes if outcome.outcome == "refused"]
        for outcome in refused:
            self.stderr.write(f"{outcome.id[:8]}: {outcome.reason}")
        self.stdout.write(
            f"{len(events) - max(len(refused), untold)} events published, "
            f"{Skill.objects.public().count()} skills listed"
        )
        return untold


def read_keys() -> dict[str, str]:
    keys: dict[str, str] = json.loads(signing.unseal((settings.VAR_DIR / KEYS).read_text()))
    return keys


def world(keys: dict[str, str], now: int) -> list[Event]:
    """Profiles, skills and lists, dated over the last weeks so that the sorts differ."""
    events = []
    for name, about in AUTHORS.items():
        profile = json.dumps({"name": name, "about": about}, ensure_ascii=False)
        events.append(_sign(keys[name], kinds.PROFILE, profile, [], now - 40 * DAY))
    addresses = {}
    for age, sample in enumerate(SKILLS):
        content = json.dumps(
            {"description": sample.description, "template": sample.template, **sample.content}, ensure_ascii=False
        )
        tags = [["d", sample.d], ["scope", "public"], ["description", sample.description]]
        tags += [["t", topic] for topic in sample.topics] + [list(tag) for tag in sample.tags]
        events.append(_sign(keys[sample.author], kinds.SKILL, content, tags, now - 35 * DAY + age * 2 * DAY))
        addresses[sample.d] = Address(kinds.SKILL, nostr.public_key(keys[sample.author]), sample.d)
    for age, (name, wanted) in enumerate(ADOPTERS.items()):
        entries = [["a", str(addresses[d]), settings.EMBEDDED_RELAY_URL] for d in wanted]
        events.append(_sign(keys[name], kinds.ADOPTIONS, "", entries, now - 5 * DAY + age * 3600))
    return events


def removal(keys: dict[str, str], now: int) -> list[Event]:
    """One deletion per key, of everything the world published under it."""
    events = []
    for name, secret in keys.items():
        pubkey = nostr.public_key(secret)
        addresses = [str(Address(kinds.SKILL, pubkey, sample.d)) for sample in SKILLS if sample.author == name]
        addresses += [f"{kinds.ADOPTIONS}:{pubkey}:", f"{kinds.PROFILE}:{pubkey}:"]
        events.append(_sign(secret, kinds.DELETION, "", [["a", address] for address in addresses], now))
    return events


def _sign(secret: str, kind: int, content: str, tags: list[list[str]], at: int) -> Event:
    frozen = tuple(tuple(tag) for tag in tags)
    return nostr.sign(Draft(nostr.public_key(secret), at, kind, frozen, content), secret)
