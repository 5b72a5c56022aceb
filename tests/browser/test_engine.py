"""The engine as an owner meets it: ten skills, eight on demand, what an answer cost and why, a cheaper variant, a
budget that stops; and an agent that is told by words, and by direct message, what to watch for."""

import json
import re
import time
from collections.abc import Iterator
from typing import Any

from playwright.sync_api import expect
from websockets.sync.client import connect

from marketplace.protocol import direct, kinds, nip19, nostr
from marketplace.protocol.events import Draft, Event
from tests import fakes
from tests.browser.steps import new_agent
from tests.stack import Stack, eventually

SENDING = {"mention-alert", "topic-watch"}  # samples without a model: there is nothing of them to load
TOOLS = ["skill", "skill_create", "nostr_profile", "nostr_dm_send", "nostr_query"]


def send(site: Stack, event: Event) -> None:
    with connect(site.relay) as socket:
        socket.send(json.dumps(["EVENT", event.to_dict()]))
        assert json.loads(socket.recv(5))[:3] == ["OK", event.id, True]


def stored(site: Stack, wanted: dict[str, Any]) -> Iterator[Event]:
    with connect(site.relay) as socket:
        socket.send(json.dumps(["REQ", "x", wanted]))
        while (frame := json.loads(socket.recv(5)))[0] == "EVENT":
            yield Event.from_dict(frame[2])


def letters(site: Stack, secret: str) -> list[tuple[str, str]]:
    """The direct messages to this key: (sender, text)."""
    wraps = stored(site, {"kinds": [kinds.GIFT_WRAP], "#p": [nostr.public_key(secret)]})
    return [(message.sender, message.text) for message in (direct.read(secret, wrap) for wrap in wraps)]


def say(page: Any, slug: str, words: str) -> None:
    page.goto(f"/agents/{slug}/talk/")
    page.locator("#id_message").fill(words)
    page.get_by_role("button", name="Send").click()
    page.wait_for_url(re.compile(r"/talk/\d+/"))


def test_an_owner_sees_what_skills_cost_compares_and_stops(site: Stack, page: Any, models: fakes.ModelServer) -> None:
    slug = new_agent(page, "Ada", grants=("skill",))
    page.goto("/")
    listed = page.locator("main table tbody tr th a").all_inner_texts()
    names = [name for name in listed if name not in SENDING][:10]
    for name in names:
        page.goto("/")
        page.get_by_role("link", name=name, exact=True).click()
        page.get_by_role("button", name="Adopt for Ada").click()
        expect(page.get_by_text("Adopted by Ada")).to_be_visible()
    page.goto(f"/agents/{slug}/skills/")
    lines = page.locator("ol.order li")
    expect(lines).to_have_count(10)
    for name in names[2:]:
        line = lines.filter(has=page.get_by_role("link", name=name, exact=True))
        line.get_by_role("button", name=re.compile("^on demand")).click()
        expect(line.get_by_role("button", name=re.compile("^on demand"))).to_have_attribute("aria-pressed", "true")
    wanted = names[4]

    models.script(
        fakes.calls(("a", "skill", {"name": wanted}), prompt_tokens=1_000, completion_tokens=100),
        fakes.text("As the skill says: done.", prompt_tokens=1_000, completion_tokens=100),
    )
    say(page, slug, "Do what one of your skills is for.")
    main = page.locator("main")
    expect(main).to_contain_text("As the skill says: done.", timeout=30_000)
    catalogue = next(
        said["content"] for said in models.asked[-1]["messages"] if "<available_skills>" in said["content"]
    )
    assert [name for name in names if f"`{name}`" in catalogue] == names[2:], catalogue
    assert "skill_instructions" in models.asked[-1]["messages"][-1]["content"]
    expect(main).to_contain_text("$0.00042")
    page.locator("details.did summary").first.click()
    expect(page.locator("details.did").first).to_contain_text(wanted)

    page.get_by_role("link", name="the run", exact=True).last.click()
    expect(main).to_contain_text(wanted)
    expect(page.get_by_role("heading", name="Ledger")).to_be_visible()
    expect(main).to_contain_text("openai/gpt-4o-mini")

    page.goto("/")
    page.get_by_role("link", name=names[0], exact=True).click()
    naddr = page.url.rstrip("/").rpartition("/")[2]
    page.goto(f"/compare/new/?agent={slug}&skill={naddr}")
    page.get_by_label("Message", exact=True).fill("Same words for both.")
    page.locator("#id_b_llm").fill("openai/gpt-4.1-nano")
    models.script(fakes.text("a longer answer", prompt_tokens=1_000, completion_tokens=100), model="gpt-4o-mini")
    models.script(
        fakes.text("a shorter answer", model="gpt-4.1-nano", prompt_tokens=1_000, completion_tokens=100),
        model="gpt-4.1-nano",
    )
    page.get_by_role("button", name="Run both").click()
    expect(main).to_contain_text("longer", timeout=30_000)
    expect(main).to_contain_text("shorter", timeout=30_000)
    expect(page.locator("main ins, main del").first).to_be_visible(timeout=30_000)
    expect(main).to_contain_text("0.00021")
    expect(main).to_contain_text("0.00014")
    models.by_model.clear()

    page.goto(f"/agents/{slug}/budgets/")
    limit = page.locator("main table input").first
    limit.fill("0.0005")
    page.get_by_role("button", name="Save", exact=True).click()
    say(page, slug, "One more.")
    expect(main).to_contain_text("budget", timeout=30_000)
    expect(main).to_contain_text("failed")


def test_an_agent_warns_of_what_it_was_told_to_watch(site: Stack, page: Any, models: fakes.ModelServer) -> None:
    """On the page and by direct message: key resolved, private skill made, approved, event, warning."""
    admin = nostr.generate_secret()
    slug = new_agent(page, "Warner", nip19.encode_npub(nostr.public_key(admin)), tuple(TOOLS))
    page.goto(f"/agents/{slug}/")
    agent_key = nip19.read_key(re.findall(r"npub1[02-9ac-hj-np-z]{58}", page.content())[0])
    for by, word in (("page", "lightning"), ("dm", "thunder")):
        watched = nostr.generate_secret()
        npub = nip19.encode_npub(nostr.public_key(watched))
        made = {
            "name": f"warn-{word}",
            "description": f"Warns of {word}",
            "template": f"DM admin: {word}! {{content}}",
            "trigger": "nostr-subscription",
            "filter": {"kinds": [1], "authors": [npub], "search": word},
            "action": "template",
            "autonomy": "auto",
        }
        models.script(
            fakes.calls(("a", "nostr_profile", {"pubkey": npub})),
            fakes.calls(("b", "skill_create", made)),
            fakes.text(f"I will warn you of {word}."),
        )
        words = f"warn me when {npub} posts about {word}"
        if by == "page":
            say(page, slug, words)
        else:
            send(site, nostr.gift_wrap(admin, agent_key, words))
            page.goto(f"/runs/?agent={slug}&status=waiting")
            rows = page.locator("main table tbody tr")
            eventually(30, lambda rows=rows: page.reload() and rows.count(), "the run waits for its owner")
            rows.first.get_by_role("link").first.click()
        main = page.locator("main")
        expect(main).to_contain_text(f"warn-{word}", timeout=30_000)
        page.get_by_role("button", name=re.compile("^Approve")).first.click()
        expect(main).to_contain_text(f"I will warn you of {word}.", timeout=30_000)
        page.goto(f"/agents/{slug}/triggers/")
        expect(main).to_contain_text(f"warn-{word}")
        eventually(20, lambda: page.reload() and "armed" in page.locator("main").inner_text(), "the trigger is armed")
        time.sleep(1.5)  # the listener looks for new triggers every half second
        note = Draft(nostr.public_key(watched), int(time.time()), 1, (), f"A {word} storm comes")
        send(site, nostr.sign(note, watched))
        told = f"{word}! A {word} storm comes"
        eventually(30, lambda told=told: told in dict(map(reversed, letters(site, admin))), "the warning comes")
    assert any(text == "I will warn you of thunder." for _, text in letters(site, admin))
    assert {sender for sender, _ in letters(site, admin)} == {agent_key}
