"""All four kinds of trigger, armed by their owner in the browser, seen to fire: event, schedule, web request, chain."""

import json
import re
import time
from typing import Any

import httpx
from playwright.sync_api import expect
from websockets.sync.client import connect

from marketplace.protocol import kinds, nostr
from marketplace.protocol.events import Draft, Event
from tests import armed, fakes
from tests.browser.steps import new_agent
from tests.stack import Stack, eventually


def send(site: Stack, secret: str, kind: int, content: str, tags: list[list[str]]) -> Event:
    draft = Draft(nostr.public_key(secret), int(time.time()), kind, tuple(map(tuple, tags)), content)
    event = nostr.sign(draft, secret)
    with connect(site.relay) as socket:
        socket.send(json.dumps(["EVENT", event.to_dict()]))
        assert json.loads(socket.recv(5))[:3] == ["OK", event.id, True]
    return event


def test_all_four_kinds_are_armed_and_fire(site: Stack, page: Any, models: fakes.ModelServer) -> None:
    slug = new_agent(page, "Fourfold", grants=("nostr_query",))
    try:
        armed_and_fired(site, page, models, slug)
    finally:
        armed.shell(
            site, f"from agents.models import Agent; print(Agent.objects.filter(slug={slug!r}).update(enabled=False))"
        )


def armed_and_fired(site: Stack, page: Any, models: fakes.ModelServer, slug: str) -> None:
    author = nostr.generate_secret()
    key = nostr.public_key(author)
    triggers = {
        "on-event": [["trigger", "nostr-subscription"], ["filter", json.dumps({"kinds": [1], "#t": ["fourkinds"]})]],
        "on-time": [["trigger", "cron"], ["schedule", "* * * * *"], ["tz", "Europe/Berlin"]],
        "on-request": [["trigger", "webhook"], ["param", "city", "string", "required"]],
        "on-end": [["trigger", "chain"], ["source", f"31123:{key}:on-request"], ["on", "succeeded"]],
    }
    for name, tags in triggers.items():
        content = {"description": f"Runs {name}", "template": f"Answer {name}. {{{{city}}}}"}
        send(site, author, kinds.SKILL, json.dumps(content), [["d", name], *tags])
    main, rows = page.locator("main"), page.locator("main table tbody tr")
    for name in triggers:
        eventually(20, lambda name=name: page.goto(f"/?q={name}") and rows.count() == 1, "the skill is listed")
        page.get_by_role("link", name=name, exact=True).click()
        page.get_by_role("button", name=re.compile("^Adopt for")).click()
        expect(page.get_by_text(re.compile("^Adopted by"))).to_be_visible()

    page.goto(f"/agents/{slug}/triggers/")
    line = {name: rows.filter(has=page.get_by_role("link", name=name, exact=True)) for name in triggers}
    for name in triggers:
        expect(line[name]).to_contain_text("armed")
    line["on-request"].get_by_role("link", name=re.compile("^Its web address")).click()
    page.get_by_role("button", name="Make its address").click()
    address = page.locator("#live-address").inner_text()
    answer = httpx.post(address, json={"city": "Lviv"}, headers={"Idempotency-Key": "one"})
    again = httpx.post(address, json={"city": "Lviv"}, headers={"Idempotency-Key": "one"})
    assert answer.status_code == 202 and again.status_code == 200 and again.json()["run"] == answer.json()["run"]
    assert httpx.post(address, json={}).status_code == 422
    send(site, nostr.generate_secret(), 1, "hello", [["t", "fourkinds"]])
    for name in ("on-event", "on-request", "on-end", "on-time"):
        page.goto(f"/runs/?skill={name}")
        eventually(
            90, lambda: page.reload() and rows.filter(has_text="succeeded").count(), f"a run of {name} that succeeded"
        )
    said = [str(message.get("content")) for asked in models.asked for message in asked["messages"]]
    assert any("Answer on-request." in text and "Lviv" in text for text in said)
    assert any("Answer on-end." in text for text in said)

    page.goto(f"/agents/{slug}/pipelines/")
    expect(main).to_contain_text("on-end")
    expect(main).to_contain_text("well")
    page.goto(f"/agents/{slug}/triggers/")
    line["on-time"].get_by_text("Change").click()
    line["on-time"].get_by_role("button", name=re.compile("^Pause")).click()
    expect(line["on-time"]).to_contain_text("paused")
    line["on-time"].get_by_role("link", name=re.compile("^What would have happened")).click()
    page.get_by_role("link", name="the last day").click()
    expect(main).to_contain_text("1440 runs of 1440 occasions")
