"""Another owner's things are not there, whatever the address and the method; nobody's are there for visitors."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from agents.models import (
    AdoptedSkill,
    Agent,
    Alert,
    AlertRoute,
    Budget,
    Change,
    Comparison,
    Conversation,
    Delivery,
    Hook,
    Memory,
    Notice,
    ProviderKey,
    Run,
    SkillUpload,
    Step,
    Trigger,
)
from marketplace.models import ApiToken, Draft, Identity, Publication, User
from tests.agents import rows

pytestmark = pytest.mark.django_db

METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
# Open to everybody by design: the catalogue, machines, and a link whose token is the credential.
PUBLIC = {"skill", "author", "event", "sign_in_link", "hook"}
# Of other packages; their ids are not ours, or not those of owners' things.
FOREIGN = ("accounts/", "api/v1/docs", "admin/")


def routes(resolver: Any = None, prefix: str = "") -> Iterator[tuple[str, str]]:
    """(route, name) of every address with an id in it."""
    for entry in (resolver or get_resolver()).url_patterns:
        route = prefix + str(entry.pattern).removeprefix("^").removesuffix("$")
        if isinstance(entry, URLResolver):
            yield from routes(entry, route)
        elif isinstance(entry, URLPattern) and "<" in route and not route.startswith(FOREIGN):
            yield route, entry.name or ""


OWNED = sorted((route, name) for route, name in routes() if name not in PUBLIC and "skills/<" not in route)


@pytest.fixture
def alice() -> User:
    """Has one of everything."""
    user = rows.owner("alice")
    own = rows.agent(user, "Secret name")
    own.slug = "secret"
    own.save()
    Budget.objects.create(agent=own, period="day", limit=1)
    ProviderKey.objects.create(agent=own, provider="openai", sealed="x")
    AdoptedSkill.objects.create(agent=own, address=f"31123:{'a' * 64}:x", pinned_event="b" * 64)
    trigger = Trigger.objects.create(
        agent=own, address=f"31123:{'a' * 64}:x", event_id="b" * 64, kind="webhook", armed_at=0
    )
    AlertRoute.objects.create(agent=own, webhook="https://example.org/secret path", sealed="x")
    Notice.objects.begin(own, "failing", trigger.address, "secret alert", timezone.now())
    Hook.objects.create(trigger=trigger, token_hash="t" * 64, test_hash="u" * 64)
    Delivery.objects.create(trigger=trigger, at=timezone.now(), key="secret id", accepted=True, body=b"secret body")
    talk = Conversation.objects.create(
        agent=own, title="secret talk", created_at=timezone.now(), updated_at=timezone.now()
    )
    run = rows.run(own, status="waiting", output="secret output", skill_name="secret skill", conversation=talk, turn=1)
    Step.objects.create(run=run, position=1, kind="tool", state="waiting", name="nostr_post", started_at=timezone.now())
    Comparison.objects.create(agent=own, key="k", run_a=run, run_b=run, created_at=timezone.now())
    Memory.objects.create(agent=own, text="secret memory", created_at=timezone.now())
    Change.record(own, "llm", "", "secret model", "other", timezone.now())
    ApiToken.issue(user, "secret token", ["read"])
    Draft.objects.create(user=user, identity=own.identity)
    SkillUpload.objects.create(agent=own, name="secret", digest="", size=1, files=1, uploaded_at=timezone.now())
    Publication.objects.create(identity=own.identity, event_id="c" * 64, kind=31123, raw="{}", why="secret")
    return user


@pytest.fixture
def bob() -> User:
    user = rows.owner("bob")
    rows.agent(user, "Other")
    return user


def filled(route: str, user: User) -> str:
    """The address of the owner's thing."""
    own, first = Agent.objects.get(owner=user), route.partition("<")[0]
    ids = {
        "slug": own.slug,
        "run_id": Run.objects.get(agent=own).pk,
        "other": Run.objects.get(agent=own).pk,
        "comparison_id": Comparison.objects.get(agent=own).pk,
        "position": "1",
        "conversation_id": str(Conversation.objects.get(agent=own).pk),
        "delivery": str(Delivery.objects.get(trigger__agent=own).pk),
        "pk": str(
            Draft.objects.get(user=user).pk if first.startswith("drafts/")
            else Publication.objects.get(identity__user=user).pk if first.startswith("publications/")
            else ApiToken.objects.get(user=user).pk if first.startswith("account/")
            else Run.objects.get(agent=own).pk if first.startswith("runs/")
            else Comparison.objects.get(agent=own).pk if first.startswith("compare/")
            else Conversation.objects.get(agent=own).pk if "talk/" in route
            else Trigger.objects.get(agent=own).pk if "triggers/" in route
            else Memory.objects.get(agent=own).pk if "memory/" in route
            else Change.objects.get(agent=own).pk if "changes/" in route
            else ProviderKey.objects.get(agent=own).pk
        ),
    }  # fmt: skip
    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda match: ids[match[1]], route)


def state() -> list[Any]:
    """Everything of every owner, to see that nothing moved."""
    models = (
        Agent,
        Alert,
        AlertRoute,
        Notice,
        Budget,
        Comparison,
        Conversation,
        Delivery,
        Hook,
        ProviderKey,
        AdoptedSkill,
        Trigger,
        Run,
        Step,
        Draft,
        Publication,
        Identity,
        SkillUpload,
        Memory,
        Change,
    )
    found: list[Any] = [list(model.objects.order_by("pk").values()) for model in models]
    return [*found, list(ApiToken.objects.order_by("pk").values())]


def test_the_walk_finds_the_addresses() -> None:
    names = {name for _, name in OWNED}
    assert {"agent", "agent_settings", "agent_key_remove", "run", "run_stop", "step_decide", "token_revoke"} <= names
    assert any("api/v1/runs/<" in route for route, _ in OWNED)


@pytest.mark.parametrize(("route", "name"), OWNED)
def test_a_strangers_thing_is_not_there(route: str, name: str, alice: User, bob: User, client: Client) -> None:
    client.force_login(bob)
    before, address = state(), filled(route, alice)
    answers = [getattr(client, method)(address) for method in METHODS]
    answers += [client.get(address, headers={"HX-Request": "true"}), client.post(address, headers={"HX-Request": "1"})]
    answers += [client.post(address, {}, content_type="application/json")] * address.startswith("/api/")
    for response in answers:
        # A method that the address never takes says so before it looks, and so does a body that is no JSON.
        assert response.status_code in ({400, 404, 405} if address.startswith("/api/") else {404, 405}), (
            response.request
        )
        assert b"ecret " not in response.content
    assert any(response.status_code == 404 for response in answers)
    assert state() == before


@pytest.mark.parametrize(("route", "name"), OWNED)
def test_a_visitor_is_asked_to_sign_in(route: str, name: str, alice: User, client: Client) -> None:
    before, address = state(), filled(route, alice)
    for method in METHODS:
        response = getattr(client, method)(address)
        if address.startswith("/api/"):
            assert response.status_code in {401, 403, 405}
        else:
            assert response.status_code in {302, 405}, (method, response.status_code)
            assert response.status_code == 405 or response["Location"].startswith("/accounts/login/?next=")
    assert state() == before


@pytest.mark.parametrize(
    "address", ["/agents/", "/runs/", "/costs/", "/account/", "/drafts/", "/api/v1/runs", "/api/v1/alerts"]
)
def test_lists_hold_only_what_is_ones_own(address: str, alice: User, bob: User, client: Client) -> None:
    client.force_login(bob)
    page = client.get(address).content.decode()
    assert "ecret" not in page
    client.force_login(alice)
    assert client.get(address).status_code == 200


def test_filters_do_not_reach_over_either(alice: User, bob: User, client: Client) -> None:
    client.force_login(bob)
    for query in ("agent=secret", "skill=secret skill", "status=waiting"):
        assert not client.get(f"/runs/?{query}").context["runs"]
        assert client.get(f"/api/v1/runs?{query}").json()["items"] == []
    assert client.get("/costs/?agent=secret").context["total"].attempts == 0
    assert client.post("/agents/switch/", {"agent": "secret"}).status_code == 404
    assert client.post("/runs/start/", {"agent": "secret", "message": "x", "token": "t"}).status_code == 422


def test_a_private_skill_of_another_key_cannot_be_run(alice: User, bob: User, client: Client) -> None:
    from marketplace.models import Skill

    key = Agent.objects.get(owner=alice).identity.pubkey
    Skill.objects.create(kind=31124, pubkey=key, d="x", event_id="d" * 64, created_at=0, first_published=0)
    client.force_login(bob)
    assert client.get(f"/runs/start/?skill=31124:{key}:x").status_code == 404
