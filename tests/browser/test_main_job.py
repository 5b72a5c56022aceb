"""The main job in a real browser: browse, search, adopt, reorder, edit, publish, trigger, run, cost."""

import json
import re
import time
from decimal import Decimal
from typing import Any

from playwright.sync_api import expect
from websockets.sync.client import connect

from marketplace.protocol import kinds, nip19, nostr
from marketplace.protocol.events import Draft, Event
from tests import fakes
from tests.browser.steps import new_agent
from tests.stack import Stack, eventually


def publish(site: Stack, content: str, tags: list[list[str]], kind: int = 1) -> Event:
    """A note, or another event, by another client, straight to the relay."""
    secret = nostr.generate_secret()
    note = Draft(nostr.public_key(secret), int(time.time()), kind, tuple(map(tuple, tags)), content)
    event = nostr.sign(note, secret)
    with connect(site.relay) as socket:
        socket.send(json.dumps(["EVENT", event.to_dict()]))
        answer = json.loads(socket.recv(5))
    assert answer[:3] == ["OK", event.id, True], answer
    return event


def adopt(page: Any, name: str, agent: str = "Demo agent") -> None:
    page.goto("/")
    page.get_by_role("link", name=name, exact=True).click()
    page.locator("#adopt-here").get_by_role("button").first.wait_for()
    if page.get_by_role("button", name=re.compile("^Adopt for")).count():  # another test may have done it
        page.get_by_role("button", name=re.compile("^Adopt for")).click()
    expect(page.get_by_text(f"Adopted by {agent}")).to_be_visible()


def adopters(page: Any, name: str) -> int:
    page.goto(f"/?q={name}")
    return int(page.locator("main table tbody tr").first.locator("td.num a").inner_text())


def test_anyone_browses_searches_and_reads(site: Stack, browser: Any) -> None:
    page = browser.new_page(base_url=site.url)
    page.goto("/")
    rows = page.locator("main table tbody tr")
    expect(rows.first).to_contain_text("spellcheck")
    page.get_by_role("searchbox").fill("translat")
    expect(rows).to_have_count(1)
    page.goto("/?trigger=nostr-subscription&sort=updated")
    expect(rows.filter(has_text="mention-monitor")).to_have_count(1)
    expect(rows.filter(has_text="plain-words")).to_have_count(0)
    page.goto("/?q=перевірка")
    page.get_by_role("link", name="перевірка-фактів").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("перевірка-фактів")
    expect(page.get_by_text("valid")).to_be_visible()
    page.get_by_role("link", name=re.compile(r"^\d+ adopters")).click()
    expect(page.locator("main")).to_contain_text("Maren Holt")
    page.close()


def test_an_owner_adopts_reorders_and_unadopts(site: Stack, page: Any) -> None:
    slug, before_it = new_agent(page, "Orderly"), adopters(page, "spellcheck")
    for name in ("plain-words", "spellcheck"):
        adopt(page, name, "Orderly")
    eventually(10, lambda: adopters(page, "spellcheck") == before_it + 1, "the number follows")
    page.goto(f"/agents/{slug}/skills/")
    items = page.locator("ol.order li")
    spellcheck, plain = items.filter(has_text="spellcheck"), items.filter(has_text="plain-words")
    before = order(items, "plain-words", "spellcheck")
    assert before[0] < before[1]
    for _ in range(before[1]):
        place = order(items, "spellcheck")[0]
        spellcheck.get_by_role("button", name=re.compile("^Up")).click()
        eventually(10, lambda place=place: order(items, "spellcheck")[0] == place - 1, "one place up")
    expect(items.first).to_contain_text("spellcheck")
    plain.get_by_role("button", name=re.compile("^Un-adopt")).click()
    expect(plain).to_have_count(0)
    expect(spellcheck).to_have_count(1)


def order(items: Any, *names: str) -> list[int]:
    """The places of these skills in the list, from 0; -1 while the page is still loading."""
    texts = items.all_inner_texts()
    return [next((at for at, text in enumerate(texts) if name in text), -1) for name in names]


def test_a_skill_is_written_previewed_and_published(site: Stack, page: Any, models: fakes.ModelServer) -> None:
    page.goto("/drafts/new/")
    page.locator("#id_d").fill("shout 📣")
    page.get_by_label("Description").fill("Says it louder")
    page.locator("#id_template").fill("system:\nShout.\nuser:\n{{message}}!")
    preview = page.locator("#preview")
    expect(preview).to_contain_text("Shout.")
    page.get_by_role("button", name="Review and publish").click()
    page.get_by_role("button", name=re.compile("^Publish to 1 relay")).click()
    expect(page.locator("main")).to_contain_text(site.relay)
    page.goto("/?q=shout")
    page.get_by_role("link", name="shout 📣").click()
    models.script(fakes.text("HELLO!", prompt_tokens=1000, completion_tokens=100))
    page.get_by_role("link", name="Run", exact=True).click()
    page.get_by_label("Message").fill("hello")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("main")).to_contain_text("HELLO!", timeout=20_000)
    expect(page.locator("main")).to_contain_text("succeeded")
    expect(page.locator("main")).to_contain_text("0.00021")
    assert models.asked[-1]["messages"][-1] == {"role": "user", "content": "hello!"}


def test_an_event_fires_a_trigger_and_the_owner_approves_what_it_writes(
    site: Stack, page: Any, models: fakes.ModelServer
) -> None:
    page.goto("/agents/demo/settings/")
    admin = page.locator("#id_admin_pubkey").input_value()
    adopt(page, "mention-monitor")
    models.script(
        fakes.calls(("a", "nostr_dm_send", {"message": "Somebody needs you."})), fakes.text("I told the admin.")
    )
    event = publish(site, "please help, it is broken", [["p", nip19.read_key(admin)]])
    page.goto("/runs/")
    rows = page.locator("main table tbody tr")
    eventually(20, lambda: page.reload() and rows.filter(has_text="mention-monitor").count(), "a run")
    page.get_by_role("link", name=re.compile("mention-monitor")).first.click()
    expect(page.locator("main")).to_contain_text("waiting", timeout=20_000)
    expect(page.locator("main")).to_contain_text("Somebody needs you.")
    page.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.locator("main")).to_contain_text("I told the admin.", timeout=20_000)
    expect(page.locator("main")).to_contain_text("succeeded")
    assert event.content in models.asked[-1]["messages"][0]["content"]


def test_a_template_action_makes_one_run_without_a_model(site: Stack, page: Any, models: fakes.ModelServer) -> None:
    adopt(page, "topic-watch")
    asked = len(models.asked)
    event = publish(site, "a new skill is out", [["t", "nostrskills"]])
    page.goto("/runs/?skill=topic-watch")
    rows = page.locator("main table tbody tr")
    eventually(20, lambda: page.reload() and rows.filter(has_text="succeeded").count(), "a run that succeeded")
    assert rows.count() == 1
    page.get_by_role("link", name=re.compile("topic-watch")).first.click()
    expect(page.locator("main")).to_contain_text(event.id)
    assert len(models.asked) == asked


def test_costs_show_what_was_spent(site: Stack, page: Any, models: fakes.ModelServer) -> None:
    models.script(fakes.text("Counted.", prompt_tokens=1000, completion_tokens=100))
    page.goto("/runs/start/?agent=demo")
    page.get_by_label("Message").fill("count this")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("main")).to_contain_text("succeeded", timeout=20_000)
    page.goto("/costs/")
    expect(page.locator("main svg").first).to_be_visible()
    text = page.locator("main").inner_text()
    found = [Decimal(amount) for amount in re.findall(r"0\.\d+", text)]
    assert Decimal("0.00021") <= max(found) < 1


def test_pages_hold_at_360_pixels_and_in_the_dark(site: Stack, page: Any) -> None:
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 360, "height": 800})
    endless = {"description": "W" * 500, "template": "W" * 500}
    trigger = [["trigger", "cron"], ["schedule", "1" * 90]]
    publish(site, json.dumps(endless), [["d", "W" * 150], *trigger], kinds.SKILL)
    eventually(20, lambda: "WWWW" in page.goto("/?sort=newest").text(), "the skill is listed")
    page.get_by_role("link", name=re.compile("^W+$")).click()
    page.get_by_role("button", name=re.compile("^Adopt for")).click()
    expect(page.get_by_text("Adopted by Demo agent")).to_be_visible()
    paths = ["/", "/?sort=newest", "/triggers/", "/agents/", "/agents/demo/", "/agents/demo/skills/"]
    paths += [
        "/agents/demo/settings/",
        "/agents/demo/grants/",
        "/runs/",
        "/costs/",
        "/operate/",
        "/account/",
        "/drafts/",
        "/drafts/new/",
    ]
    for path in paths:
        answer = page.goto(path)
        assert answer.status == 200, path
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    page.goto("/agents/demo/skills/")
    page.get_by_role("button", name=re.compile("^Un-adopt W+$")).click()
    expect(page.locator("main")).to_contain_text("no longer adopts")
