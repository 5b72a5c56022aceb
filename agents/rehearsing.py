"""“What would have happened”: a trigger over the past days, without a run and without a model."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import Any

from django.conf import settings

from agents.dispatch.limiting import limits_of
from agents.engine.rehearsal import Moment, Rehearsed, rehearse
from agents.models import Delivery, Run, Trigger
from marketplace import relays
from marketplace.protocol.events import Event
from marketplace.protocol.triggers import read_trigger
from marketplace.protocol.triggers.chain import Chain
from marketplace.protocol.triggers.cron import Cron
from marketplace.protocol.triggers.subscription import Subscription

MOST = 2_000  # occasions looked at
SECONDS = 8.0  # that relays have to answer


@dataclass(frozen=True)
class Rehearsal:
    """What would have happened, oldest first; `problems` name the relays that did not tell everything."""

    days: int
    found: list[Rehearsed] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    cut: bool = False  # there was more than is looked at

    @property
    def runs(self) -> list[Rehearsed]:
        return [one for one in self.found if one.refusal is None]

    @property
    def held_back(self) -> list[tuple[str, int]]:
        return Counter(one.refusal.reason for one in self.found if one.refusal).most_common()

    @property
    def by_day(self) -> list[tuple[str, int, int]]:
        """(day in UTC, runs, held back)."""
        days: dict[str, list[int]] = {}
        for one in self.found:
            day = f"{datetime.fromtimestamp(one.moment.at, UTC):%Y-%m-%d}"
            days.setdefault(day, [0, 0])[one.refusal is not None] += 1
        return [(day, ran, held) for day, (ran, held) in sorted(days.items())]


def rehearsal(trigger: Trigger, days: int, now: datetime) -> Rehearsal:
    """Asks relays for stored events of a subscription; everything else is on record here."""
    spec = read_trigger([tuple(tag) for tag in trigger.tags])
    since = now - timedelta(days=days)
    data = spec.data if spec else None
    problems: dict[str, str] = {}
    if isinstance(data, Subscription):
        moments, problems = _events(trigger, data, since, now)
    elif isinstance(data, Cron):
        moments = [Moment(int(slot.timestamp()), slot) for slot in islice(_slots(data, since, now), MOST)]
    elif isinstance(data, Chain):
        moments = list(_ends(trigger, data, since))
    else:
        moments = list(_deliveries(trigger, since))
    found = rehearse(moments[:MOST], trigger.action, limits_of(trigger.agent))
    return Rehearsal(days, found, problems, len(moments) >= MOST)


def _events(
    trigger: Trigger, data: Subscription, since: datetime, now: datetime
) -> tuple[list[Moment], dict[str, str]]:
    urls = list(dict.fromkeys([*(trigger.agent.relays or ()), *settings.RELAYS]))
    start = int(since.timestamp())
    wanted = [{**one.timeless().to_dict(), "since": start, "until": int(now.timestamp())} for one in data.filters]
    fetched = relays.fetch(urls, wanted, SECONDS)
    own = trigger.agent.identity.pubkey
    # Many relays ignore the words of a search.
    fitting = [one for one in fetched.events if data.matches(one)]
    moments = [Moment(one.created_at, one, one.pubkey == own, _expired(one)) for one in fitting]
    return moments, fetched.problems


def _expired(event: Event) -> bool:
    """Whether it was over as soon as it was there (NIP-40)."""
    text = event.value("expiration")
    return text.isascii() and text.isdigit() and int(text[:15]) <= event.created_at


def _slots(data: Cron, since: datetime, now: datetime) -> Iterator[datetime]:
    end = now.astimezone(UTC)
    return takewhile(lambda slot: slot <= end, data.after(since))


def _ends(trigger: Trigger, data: Chain, since: datetime) -> Iterator[Moment]:
    wanted: dict[str, Any] = {} if data.on == "always" else {"status": data.on}
    ended = Run.objects.filter(
        agent=trigger.agent, skill_address=str(data.source), finished_at__gte=since, **wanted
    ).exclude(status=Run.Status.SUPPRESSED)
    for run_id, at in ended.order_by("-finished_at").values_list("pk", "finished_at")[:MOST]:
        if at is not None:
            yield Moment(int(at.timestamp()), run_id)


def _deliveries(trigger: Trigger, since: datetime) -> Iterator[Moment]:
    kept = Delivery.objects.filter(trigger=trigger, accepted=True, at__gte=since).order_by("-pk").defer("body")
    for delivery in kept[:MOST]:
        yield Moment(int(delivery.at.timestamp()), delivery)
