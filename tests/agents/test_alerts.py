"""What is wrong is told once when it begins and once when it is over: on a page, by message, by signed webhook."""

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from agents import alerting, posting, resting, telling
from agents.models import Agent, Alert, AlertRoute, Budget, Change, HeldBack, Notice, Trigger
from marketplace import relays, signing
from marketplace.models import Heartbeat, User
from marketplace.protocol import kinds
from marketplace.protocol.filters import Filter
from tests.agents import rows
from tests.agents.test_budgets import put, spent
from tests.real_relay import LocalRelay

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
ADDRESS = f"31123:{'a' * 64}:digest"


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture(autouse=True)
def everything_runs(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of the site are alive unless a test says otherwise."""
    monkeypatch.setattr(alerting.alive, "relay", lambda: "ok")
    monkeypatch.setattr(
        alerting.alive,
        "newest_beats",
        lambda: dict.fromkeys(("worker", "listener"), timezone.now() + timedelta(days=9)),
    )


@pytest.fixture
def own(db: None) -> Agent:
    owner = rows.owner("alice")
    return rows.agent(owner, admin_pubkey=signing.create_identity(owner, "mine", None).pubkey)


class Receiver(HTTPServer):
    """A real web server that keeps what comes, and answers as it is told."""

    def __init__(self) -> None:
        self.came: list[tuple[dict[str, str], bytes]] = []
        self.status = 200
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/alerts"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.came.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(self.server.status)
        self.send_header("Location", "http://127.0.0.1/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.ALLOW_ADDRESSES = ["127.0.0.1"]
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def armed(own: Agent, **values: Any) -> Trigger:
    values = {"event_id": "b" * 64, "kind": "cron", "armed_at": int(timezone.now().timestamp()), **values}
    return Trigger.objects.create(agent=own, address=ADDRESS, **values)


def look(later: float = 0, away: dict[str, Any] | None = None) -> int:
    return alerting.look(timezone.now() + timedelta(seconds=later), {} if away is None else away)


def levels(kind: str) -> list[tuple[str, str]]:
    return list(Notice.objects.filter(alert__kind=kind).order_by("pk").values_list("channel", "level"))


def failing(own: Agent) -> Trigger:
    trigger = armed(own, failures=4)
    Trigger.objects.filter(pk=trigger.pk).failed()
    assert look() == 1
    return trigger


# --- What begins and ends ----------------------------------------------------------


def test_a_trigger_that_fails_is_told_of_once_and_its_resumption_once(own: Agent) -> None:
    trigger = failing(own)
    assert look() == 0
    alert = Alert.objects.get()
    assert alert.words.startswith("The trigger of “digest” of Helper was stopped after 5 failures in a row")
    trigger.refresh_from_db()
    resting.resume(trigger, timezone.now())
    assert (look(), look()) == (1, 0)
    alert.refresh_from_db()
    assert alert.ended_at and "was resumed" in alert.ending
    assert levels("failing") == [("dm", "open"), ("dm", "over")]


def test_a_second_time_is_another_alert(own: Agent) -> None:
    trigger = failing(own)
    Trigger.objects.filter(pk=trigger.pk).update(rests="")
    assert look() == 1
    Trigger.objects.filter(pk=trigger.pk).update(rests="failures")
    assert look() == 1
    assert Alert.objects.count() == 2 and Notice.objects.count() == 3


def test_four_failures_and_a_pause_are_no_alert(own: Agent) -> None:
    trigger = armed(own, failures=4)
    assert look() == 0
    resting.pause(trigger, None)
    assert look() == 0


def test_a_trigger_that_goes_ends_its_alert_in_other_words(own: Agent) -> None:
    failing(own).delete()
    assert look() == 1
    assert "gone; it is not watched any more" in Alert.objects.get().ending


@pytest.mark.parametrize(("minutes", "news"), [(4, 0), (6, 1)])
def test_a_slot_that_is_due_and_makes_no_run_is_told_of(own: Agent, minutes: int, news: int) -> None:
    armed(own, next_run_at=timezone.now() - timedelta(minutes=minutes))
    assert look() == news


def test_a_missed_slot_is_told_of_until_the_next_one_runs(own: Agent) -> None:
    now = timezone.now()
    trigger = armed(own, next_run_at=now + timedelta(hours=1), last_fired_at=now - timedelta(days=1))
    HeldBack.objects.create(trigger=trigger, minute=now - timedelta(minutes=10), reason="missed", count=1)
    assert (look(), look()) == (1, 0)
    assert "missed what was due" in Alert.objects.get().words
    Trigger.objects.update(last_fired_at=now + timedelta(seconds=1))
    assert look(5) == 1
    assert "fired again at" in Alert.objects.get().ending


def test_what_ran_after_the_gap_or_was_held_back_for_another_reason_is_not_silent(own: Agent) -> None:
    now = timezone.now()
    trigger = armed(own, next_run_at=now + timedelta(hours=1), last_fired_at=now)
    HeldBack.objects.create(trigger=trigger, minute=now - timedelta(minutes=1), reason="missed", count=1)
    HeldBack.objects.create(trigger=trigger, minute=now + timedelta(minutes=1), reason="cooldown", count=1)
    assert look() == 0


@pytest.mark.parametrize("kind", ["cron", "webhook", "nostr-subscription", "chain"])
def test_an_owner_sets_within_how_many_hours_one_should_fire(own: Agent, kind: str) -> None:
    now = timezone.now()
    trigger = armed(own, kind=kind, expected_hours=2, armed_at=0, last_fired_at=now - timedelta(minutes=119))
    assert look() == 0
    assert look(70) == 1
    assert "you expect it within 2 hours" in Alert.objects.get().words
    Trigger.objects.filter(pk=trigger.pk).update(last_fired_at=now + timedelta(seconds=80))
    assert look(90) == 1 and Alert.objects.get().ended_at


@pytest.mark.parametrize("change", [{"enabled": False}, {"rests": "paused"}, {"usable": False}])
def test_a_trigger_that_does_not_fire_on_purpose_is_not_silent(own: Agent, change: dict[str, Any]) -> None:
    armed(own, expected_hours=1, armed_at=0, **change)
    assert look() == 0


def test_the_clock_begins_when_it_is_armed(own: Agent) -> None:
    armed(own, expected_hours=1, last_fired_at=timezone.now() - timedelta(days=30))
    assert look() == 0
    assert look(3_700) == 1


# --- Parts of the site -------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "back"),
    [("worker", "A worker runs"), ("listener", "The listener runs"), ("relay", "A relay is connected")],
)
def test_a_part_that_is_away_for_two_minutes_is_told_to_each_owner_once(
    own: Agent, part: str, back: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    armed(own)
    armed(rows.agent(own.owner, "Second"))
    armed(rows.agent(rows.owner("bob"), "Bobs"))
    rows.agent(rows.owner("carol"), "Nothing armed")
    well, remembered = dict(alerting.alive.newest_beats()), {}  # type: ignore[var-annotated]
    if part == "relay":
        monkeypatch.setattr(alerting.alive, "relay", lambda: "no relay is connected")
    else:
        monkeypatch.setattr(
            alerting.alive, "newest_beats", lambda: well | {part: timezone.now() - timedelta(minutes=3)}
        )
    assert [look(second, remembered) for second in (0, 100, 121, 200)] == [0, 0, 2, 0]
    assert sorted(Alert.objects.values_list("agent__owner__username", flat=True)) == ["alice", "bob"]
    monkeypatch.setattr(alerting.alive, "relay", lambda: "ok")
    monkeypatch.setattr(alerting.alive, "newest_beats", lambda: well)
    assert (look(300, remembered), look(301, remembered)) == (2, 0)
    assert Alert.objects.first().ending.startswith(back)  # type: ignore[union-attr]


def test_the_same_agent_speaks_to_the_end(own: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    trigger = armed(own)
    armed(rows.agent(own.owner, "Second"))
    monkeypatch.setattr(alerting.alive, "relay", lambda: "no relay is connected")
    remembered = {"relay": timezone.now() - timedelta(hours=1)}
    assert look(0, remembered) == 1
    resting.pause(trigger, None)
    assert look(10, remembered) == 0
    assert Alert.objects.get().agent == own


def test_that_no_worker_is_there_is_told_by_the_tick_itself(
    own: Agent, relay: LocalRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    armed(own)
    monkeypatch.setattr(alerting.alive, "newest_beats", dict)
    assert look(0, {"worker": timezone.now() - timedelta(hours=1)}) >= 1
    done = []

    class AtOnce:
        def __init__(self, target: Any, args: Any, daemon: bool) -> None:
            self.start = lambda: done.append(telling.tell(*args))

    monkeypatch.setattr(telling.threading, "Thread", AtOnce)
    monkeypatch.setattr(telling.app, "send_task", lambda *_, **__: None)
    telling.announce(timezone.now() + timedelta(seconds=1))
    assert done == [True]
    assert any("No worker is running" in text for text in received(relay, own))


# --- Budgets -----------------------------------------------------------------------


def test_a_budget_is_an_alert_too_and_ends_with_its_period(own: Agent) -> None:
    put(own, "agent", "day", "1")
    spent(own, "0.9", settled="0.9")
    assert telling.look(timezone.now()) == 1
    assert look() == 0
    spent(own, "0.1", settled="0.1")
    assert telling.look(timezone.now()) == 1
    assert "is used up" in Alert.objects.get().words
    assert look(86_400) == 1
    assert "has room again" in Alert.objects.get().ending
    assert levels("budget") == [("dm", "warn"), ("dm", "stop"), ("dm", "over")]


def test_a_raised_limit_ends_it_and_a_stopped_run_with_a_little_left_does_not(own: Agent) -> None:
    from agents.engine.budgets import Allowance

    budget = put(own, "agent", "day", "1")
    full = Allowance("Helper, a day", budget.limit, Decimal("0.5"), budget.pk)
    assert Notice.objects.stopped(full, timezone.now())
    assert look() == 0 and Alert.objects.get().ended_at is None
    Budget.objects.update(limit=Decimal(5))
    assert look() == 1


def test_a_budget_that_is_taken_away_ends_it(own: Agent) -> None:
    put(own, "agent", "day", "1")
    spent(own, "0.9", settled="0.9")
    assert telling.look(timezone.now()) == 1
    Budget.objects.all().delete()
    assert look() == 1 and "taken away" in Alert.objects.get().ending


# --- Where they go -----------------------------------------------------------------


def routed(own: Agent, **values: Any) -> AlertRoute:
    AlertRoute.of(own).keep({"sealed": signing.seal("a long secret"), **values})
    return AlertRoute.of(own)


def received(relay: LocalRelay, own: Agent) -> list[str]:
    admin = signing_identity(own)
    wanted = Filter(kinds=frozenset({kinds.GIFT_WRAP}), tags={"p": frozenset({admin.pubkey})})
    return [signing.unwrap(admin, event)[1] for event in relays.fetch([relay.url], [wanted], 5.0).events]


def signing_identity(own: Agent) -> Any:
    from marketplace.models import Identity

    return Identity.objects.get(pubkey=own.admin_pubkey)


def test_the_admin_reads_beginning_and_end(own: Agent, relay: LocalRelay) -> None:
    trigger = failing(own)
    Trigger.objects.filter(pk=trigger.pk).update(rests="")
    assert look() == 1
    opened, over = Notice.objects.order_by("pk")
    later = timezone.now() + timedelta(seconds=1)
    assert list(Notice.objects.due(later)) == [opened]  # in their order, also where the first has to be tried again
    assert telling.tell(opened.pk, later) and list(Notice.objects.due(later)) == [over]
    assert telling.tell(over.pk, later)
    found = received(relay, own)
    assert len(found) == 2 and all(f"/agents/{own.slug}/alerts/" in text for text in found)


def test_a_webhook_is_signed_over_its_raw_bytes(own: Agent, receiver: Receiver) -> None:
    routed(own, direct=False, webhook=receiver.url)
    failing(own)
    (notice,) = Notice.objects.all()
    assert notice.channel == "webhook" and telling.tell(notice.pk, timezone.now())
    ((headers, body),) = receiver.came
    assert headers["x-signature"] == hmac.new(b"a long secret", body, hashlib.sha256).hexdigest()
    said = json.loads(body)
    assert (said["state"], said["kind"], said["subject"], said["agent"]) == ("open", "failing", ADDRESS, own.slug)
    assert said["id"] == headers["idempotency-key"] and "“digest”" in said["words"]


def test_what_was_not_taken_is_sent_again_as_the_same_body(own: Agent, receiver: Receiver) -> None:
    routed(own, direct=False, webhook=receiver.url)
    failing(own)
    notice = Notice.objects.get()
    for status, words in {500: "It answered 500.", 302: "redirects are not followed"}.items():
        receiver.status = status
        assert not telling.tell(notice.pk, timezone.now())
        notice.refresh_from_db()
        assert words in notice.problem and notice.sent_at is None
    receiver.status = 204
    assert telling.tell(notice.pk, timezone.now())
    assert not telling.tell(notice.pk, timezone.now())
    assert len(receiver.came) == 3 and len({body for _, body in receiver.came}) == 1


def test_a_worker_killed_after_posting_repeats_the_id_and_nothing_new(
    own: Agent, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    routed(own, direct=False, webhook=receiver.url)
    failing(own)
    notice, real = Notice.objects.get(), posting._status

    def killed(*given: Any) -> int:
        real(*given)
        raise SystemExit("killed")

    monkeypatch.setattr(posting, "_status", killed)
    with pytest.raises(SystemExit):
        telling.tell(notice.pk, timezone.now())
    monkeypatch.setattr(posting, "_status", real)
    assert telling.tell(notice.pk, timezone.now())
    (first, one), (second, two) = receiver.came
    assert one == two and first["idempotency-key"] == second["idempotency-key"]


def test_private_addresses_are_not_called(own: Agent, receiver: Receiver, settings: Any) -> None:
    routed(own, direct=False, webhook=receiver.url.replace(str(receiver.server_port), "80"))
    settings.ALLOW_ADDRESSES = []
    failing(own)
    notice = Notice.objects.get()
    assert not telling.tell(notice.pk, timezone.now())
    notice.refresh_from_db()
    assert "not a public one" in notice.problem and receiver.came == []


def test_kinds_that_are_not_wanted_stand_on_the_page_alone(own: Agent) -> None:
    routed(own, kinds=["budget"], webhook="https://example.org/")
    failing(own)
    assert Alert.objects.count() == 1 and Notice.objects.count() == 0
    put(own, "agent", "day", "1")
    spent(own, "0.9", settled="0.9")
    telling.look(timezone.now())
    assert levels("budget") == [("dm", "warn"), ("webhook", "warn")]


def test_nobody_is_told_of_the_end_of_what_they_never_heard_of(own: Agent) -> None:
    routed(own, kinds=[])
    trigger = failing(own)
    routed(own, kinds=["failing"])
    Trigger.objects.filter(pk=trigger.pk).update(rests="")
    assert look() == 1 and Notice.objects.count() == 0


# --- Pages -------------------------------------------------------------------------


@pytest.fixture
def alice(own: Agent, client: Client) -> User:
    client.force_login(own.owner)
    return own.owner


def test_the_page_shows_what_is_open_first_and_the_overview_and_a_banner_say_so(
    own: Agent, alice: User, client: Client, django_assert_max_num_queries: Any
) -> None:
    trigger = failing(own)
    with django_assert_max_num_queries(8):
        client.get(f"/agents/{own.slug}/alerts/")
    page = client.get(f"/agents/{own.slug}/alerts/").content.decode()
    assert "was stopped after 5 failures in a row" in page and "on its way" in page and "1 alert is open." in page
    page = client.get(f"/agents/{own.slug}/").content.decode()
    assert page.count("was stopped after 5 failures") == 1 and f"/agents/{own.slug}/alerts/" in page
    Trigger.objects.filter(pk=trigger.pk).update(rests="")
    look()
    cache.clear()
    page = client.get(f"/agents/{own.slug}/alerts/").content.decode()
    assert "Nothing is wrong" in page and "was resumed" in page and "alert is open" not in page


def test_the_history_has_pages(own: Agent, alice: User, client: Client) -> None:
    now = timezone.now()
    for number in range(45):
        Alert.objects.create(agent=own, kind="away", subject="relay", words=f"<b>{number}</b>", at=now, ended_at=now)
    page = client.get(f"/agents/{own.slug}/alerts/")
    assert page.content.count(b"&lt;b&gt;") == 40 and b"<b>44</b>" not in page.content
    page = client.get(f"/agents/{own.slug}/alerts/?before={page.context['next']}")
    assert page.content.count(b"&lt;b&gt;") == 5
    for nonsense in ("x", "9" * 40, "-1", "²"):
        assert client.get(f"/agents/{own.slug}/alerts/", {"before": nonsense}).status_code == 200


def test_the_owner_says_where_they_go_and_it_is_on_record(own: Agent, alice: User, client: Client) -> None:
    given = {"kinds": ["failing"], "webhook": "https://hooks.example/T0K3N", "secret": "long enough"}
    assert client.post(f"/agents/{own.slug}/alerts/", given).status_code == 302
    route = AlertRoute.of(own)
    assert (route.direct, route.kinds, route.webhook) == (False, ["failing"], "https://hooks.example/T0K3N")
    assert signing.unseal(route.sealed) == "long enough"
    page = client.get(f"/agents/{own.slug}/alerts/").content.decode()
    assert "long enough" not in page and "A secret is set" in page
    assert client.post(f"/agents/{own.slug}/alerts/", {**given, "secret": "", "direct": "on"}).status_code == 302
    assert signing.unseal(AlertRoute.of(own).sealed) == "long enough"
    change = Change.objects.first()
    assert change is not None and change.what == "alerts" and "T0K3N" not in json.dumps([change.before, change.after])
    assert client.post(f"/agents/{own.slug}/alerts/", {"direct": "on"}).status_code == 302
    assert AlertRoute.of(own).sealed == ""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"webhook": "ftp://example.org/"}, "is not an address that starts with"),
        ({"webhook": "https://user:pass@example.org/"}, "Leave user name and password out"),
        ({"webhook": "http://127.0.0.1/"}, "not a public address"),
        ({"webhook": "http://169.254.169.254/latest"}, "not a public address"),
        ({"webhook": "http://localhost/"}, "not a public address"),
        ({"webhook": "https://LOCALHOST./"}, "not a public address"),
        ({"webhook": "https://[::1]/"}, "not a public address"),
        ({"webhook": "https://0x7f.1/"}, "not a public address"),
        ({"webhook": "https://example.org:8080/"}, "not a public address"),
        ({"webhook": "https://example.org/", "secret": ""}, "Set a secret"),
        ({"webhook": "https://example.org/", "secret": "short"}, "at least 8 characters"),
        ({"webhook": "https://" + "x" * 200_000}, "at most 500 characters"),
        ({"webhook": "https://ex\x00ample.org/"}, "Null characters"),
        ({"kinds": ["everything"]}, "Select a valid choice"),
        ({"webhook": "https://[::1/"}, "is not an address"),
        ({"webhook": "https://😀.example/😀", "secret": "x" * 200_000}, "at most 500 characters"),
    ],
)
def test_bad_input_is_said_beside_its_field_and_nothing_is_saved(
    own: Agent, alice: User, client: Client, given: dict[str, Any], words: str
) -> None:
    response = client.post(f"/agents/{own.slug}/alerts/", {"secret": "long enough", "direct": "on", **given})
    assert response.status_code == 422 and words in response.content.decode()
    assert not AlertRoute.objects.exists()


def test_a_test_goes_by_every_way_and_its_outcome_is_shown(
    own: Agent, alice: User, client: Client, receiver: Receiver, relay: LocalRelay
) -> None:
    routed(own, webhook=receiver.url)
    assert client.post(f"/agents/{own.slug}/alerts/test/").status_code == 302
    assert client.post(f"/agents/{own.slug}/alerts/test/").status_code == 302  # a second click sends no second one
    for notice in Notice.objects.all():
        assert telling.tell(notice.pk, timezone.now())
    assert "This is a test" in received(relay, own)[0] and json.loads(receiver.came[0][1])["kind"] == "test"
    page = client.get(f"/agents/{own.slug}/alerts/").content.decode()
    assert "webhook, a test" in page and "private message, a test" in page and Notice.objects.count() == 2


def test_with_nothing_set_up_there_is_nothing_to_test(own: Agent, alice: User, client: Client) -> None:
    routed(own, direct=False)
    page = client.post(f"/agents/{own.slug}/alerts/test/", follow=True).content.decode()
    assert "Nothing is set up to send to" in page


def test_alerts_of_others_are_not_there(own: Agent, client: Client) -> None:
    failing(own)
    assert client.get(f"/agents/{own.slug}/alerts/").status_code == 302
    client.force_login(rows.owner("bob"))
    assert client.get(f"/agents/{own.slug}/alerts/").status_code == 404
    assert client.post(f"/agents/{own.slug}/alerts/test/").status_code == 404
    assert client.get("/api/v1/alerts").json()["items"] == []
    assert client.get("/api/v1/alerts", {"agent": own.slug}).status_code == 404
    assert "alert is open" not in client.get("/agents/").content.decode()


def test_programs_read_them_page_by_page(own: Agent, alice: User, client: Client) -> None:
    failing(own)
    Alert.objects.create(
        agent=own, kind="away", subject="relay", words="w", at=timezone.now(), ended_at=timezone.now(), ending="back"
    )
    found = client.get("/api/v1/alerts?limit=1").json()
    assert (found["items"][0]["kind"], found["items"][0]["ending"]) == ("away", "back")
    (item,) = client.get(f"/api/v1/alerts?cursor={found['next']}").json()["items"]
    assert (item["kind"], item["subject"], item["ended"]) == ("failing", ADDRESS, None)
    assert [one["kind"] for one in client.get("/api/v1/alerts?state=open").json()["items"]] == ["failing"]
    assert client.get("/api/v1/alerts?state=odd").status_code == 400
    assert client.get("/api/v1/alerts?cursor=x").status_code == 400
    assert client.get("/api/v1/alerts", {"agent": "\x00"}).status_code == 404


def test_with_nothing_wrong_a_look_is_few_queries(
    own: Agent, django_assert_max_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        Trigger.objects.create(agent=own, address=f"{ADDRESS}{number}", event_id="b" * 64, kind="cron", armed_at=0)
    monkeypatch.undo()
    Heartbeat.beat("worker", "w", timezone.now())
    with django_assert_max_num_queries(4):
        look()


def test_the_hours_are_set_on_the_triggers_page_and_are_on_record(own: Agent, alice: User, client: Client) -> None:
    trigger = armed(own, kind="webhook")
    page = f"/agents/{own.slug}/triggers/{trigger.pk}/"
    assert client.post(page, {"expected_hours": " 12 "}).status_code == 302
    trigger.refresh_from_db()
    assert trigger.expected_hours == 12
    assert 'value="12"' in client.get(f"/agents/{own.slug}/triggers/").content.decode()
    change = Change.objects.get()
    assert (change.what, change.object, change.words) == ("trigger", "digest", ["expected within hours: 12"])
    assert client.post(page, {"expected_hours": ""}).status_code == 302
    trigger.refresh_from_db()
    assert trigger.expected_hours is None


@pytest.mark.parametrize("typed", ["0", "-1", "8761", "1.5", "soon", "²", "9" * 200_000, "\x00", "<b>"])
def test_hours_that_are_none_are_said_beside_the_field(own: Agent, alice: User, client: Client, typed: str) -> None:
    trigger = armed(own, expected_hours=3)
    response = client.post(f"/agents/{own.slug}/triggers/{trigger.pk}/", {"expected_hours": typed, "enabled": "off"})
    page = response.content.decode()
    assert response.status_code == 422 and "Write a whole number of hours" in page and "<details open>" in page
    assert "<b>" not in page
    trigger.refresh_from_db()
    assert (trigger.expected_hours, trigger.enabled) == (3, True)
