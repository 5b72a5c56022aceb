"""Alerts and the trigger market in a real browser: a test reaches the admin, figures come into their column."""

import re
from typing import Any

from playwright.sync_api import expect

from marketplace.protocol import nip19, nostr
from tests.browser.test_budget import new_agent
from tests.browser.test_engine import letters
from tests.stack import Stack, eventually


def test_a_test_of_the_alerts_reaches_the_admin(site: Stack, page: Any) -> None:
    admin = nostr.generate_secret()
    new_agent(page, "Watchful")
    page.locator("#id_admin_pubkey").fill(nip19.encode_npub(nostr.public_key(admin)))
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("link", name="Alerts", exact=True).click()
    main = page.locator("main")
    expect(main).to_contain_text("Nothing is wrong.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(main).to_contain_text("Saved; it holds from the next alert on.")
    page.get_by_role("button", name="Send a test").click()
    expect(main).to_contain_text("A test is on its way")
    eventually(
        30, lambda: any("test of the alerts of Watchful" in text for _, text in letters(site, admin)), "the message"
    )
    page.set_viewport_size({"width": 360, "height": 800})
    page.reload()
    expect(main).to_contain_text("private message, a test: sent")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_wrong_address_is_said_beside_its_field_and_kept(site: Stack, browser: Any, signed_in: str) -> None:
    """In a tab of its own: the console complains about the answer, which is 422."""
    context = browser.new_context(storage_state=signed_in, base_url=site.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/agents/demo/alerts/")
    page.get_by_label("Webhook", exact=True).fill("http://127.0.0.1/")
    page.get_by_label("Secret of the webhook").fill("short")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("main")).to_contain_text("This is not a public address")
    expect(page.locator("main")).to_contain_text("A secret has at least 8 characters.")
    expect(page.get_by_label("Webhook", exact=True)).to_have_value("http://127.0.0.1/")
    page.goto("/triggers/")
    expect(page.locator("main")).not_to_contain_text("Here, 7 days", use_inner_text=True)
    context.close()


def test_figures_come_into_their_column(site: Stack, page: Any) -> None:
    page.goto("/triggers/")
    cells = page.locator("[id^=here-]")
    expect(cells.first).to_have_text(re.compile("not run here|a day"))
    assert cells.filter(has_text=re.compile("not run here|a day")).count() == cells.count() > 0
