"""The exact request before a run, and two variants side by side, in a real browser with and without JavaScript."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests import fakes
from tests.stack import Stack


def start(page: Any, name: str) -> None:
    """The form of a run of this skill."""
    page.goto(f"/?q={name}")
    page.get_by_role("link", name=name, exact=True).click()
    page.get_by_role("link", name="Run", exact=True).click()
    expect(page.locator("#run-form")).to_be_visible()


def too_wide(page: Any) -> bool:
    found: bool = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    return found


def test_what_would_be_sent_is_seen_while_typing(site: Stack, page: Any, models: fakes.ModelServer) -> None:
    asked = len(models.asked)
    start(page, "plain-words")
    exact = page.locator("#exact")
    expect(exact).to_contain_text("What one call costs")
    page.get_by_label("Message").fill("Pursuant to the aforementioned")
    expect(exact).to_contain_text("Pursuant to the aforementioned")
    page.get_by_text("Only for this run: model and limits").click()
    page.get_by_label("Model", exact=True).fill("openai/gpt-4o")
    expect(exact).to_contain_text("openai/gpt-4o")
    page.get_by_label("Seed").fill("7")
    expect(exact.get_by_role("row", name=re.compile("^seed"))).to_contain_text("7")
    expect(exact.get_by_role("row", name=re.compile("^seed"))).to_contain_text("run")
    page.set_viewport_size({"width": 360, "height": 800})
    assert not too_wide(page)
    assert len(models.asked) == asked


def test_two_variants_are_compared_word_by_word(site: Stack, page: Any, models: fakes.ModelServer) -> None:
    start(page, "plain-words")
    page.get_by_role("link", name="Compare two variants").click()
    page.get_by_label("Message").fill("Pursuant to the aforementioned")
    second = page.get_by_role("group", name="Variant B")
    template = second.get_by_label("Template")
    template.fill(template.input_value() + "\nIn one short sentence.")
    second.get_by_label("Model").fill("openai/gpt-4o")
    models.script(fakes.text("As we said before, it is so.", prompt_tokens=200), model="gpt-4o-mini")
    models.script(fakes.text("As agreed, it is so.", prompt_tokens=100), model="gpt-4o")
    page.get_by_role("button", name="Run both").click()
    live = page.locator("#compare-live")
    expect(live.get_by_role("heading", name="The answers word by word")).to_be_visible(timeout=30_000)
    expect(live.locator("pre.words").first.locator("ins")).to_have_text("agreed, ")
    expect(live.locator("pre.words").first.locator("del")).to_have_text("we said before, ")
    expect(live.get_by_role("row", name=re.compile("^Tokens in"))).to_contain_text("−50 %")
    expect(live).to_contain_text("In one short sentence.")
    page.set_viewport_size({"width": 360, "height": 800})
    assert not too_wide(page)
    live.get_by_role("columnheader", name=re.compile("^B run")).get_by_role("link").click()
    expect(page.get_by_role("heading", name="Template edited for this run")).to_be_visible()
    expect(page.get_by_role("link", name="with another variant")).to_be_visible()


@pytest.fixture
def plain(site: Stack, browser: Any, signed_in: str) -> Any:
    """A tab without JavaScript."""
    context = browser.new_context(storage_state=signed_in, base_url=site.url, java_script_enabled=False)
    yield context.new_page()
    context.close()


def test_it_all_works_without_javascript(site: Stack, plain: Any, models: fakes.ModelServer) -> None:
    start(plain, "plain-words")
    plain.get_by_label("Message").fill("Herewith")
    plain.get_by_role("button", name="Exact request", exact=True).click()
    expect(plain.locator("main")).to_contain_text("Herewith")
    expect(plain.locator("main")).to_contain_text("Tokens by part")
    plain.go_back()
    plain.get_by_role("link", name="Compare two variants").click()
    plain.get_by_label("Message").fill("Herewith")
    plain.get_by_role("button", name="Exact request of B").click()
    expect(plain.locator("main")).to_contain_text("Herewith")
    plain.go_back()
    plain.get_by_role("button", name="Run both").click()
    expect(plain.locator("main")).to_contain_text("B against A")
