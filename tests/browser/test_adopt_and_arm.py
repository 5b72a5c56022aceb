"""Adopt and arm in one flow: what is wrong is said in place, then the budget and the autonomy hold at once."""

import re
from typing import Any

from playwright.sync_api import expect

from tests.browser.test_budget import new_agent
from tests.stack import Stack


def test_a_trigger_is_armed_with_its_budget_and_its_autonomy(site: Stack, browser: Any, signed_in: str) -> None:
    """In a tab of its own: the console complains about the answer to bad input, which is 422."""
    context = browser.new_context(storage_state=signed_in, base_url=site.url, viewport={"width": 360, "height": 800})
    page = context.new_page()
    slug = new_agent(page, "Armed")
    page.goto("/triggers/")
    page.get_by_role("link", name="mention-monitor", exact=True).click()
    asks = page.locator("#adopt-here")
    expect(asks).to_contain_text("Starts by itself")
    expect(asks).to_contain_text("Armed has no admin: it will not fire until you")
    asks.get_by_text("The filter as it will be armed").click()
    expect(asks.locator("pre")).to_contain_text('"kinds"')
    asks.get_by_label("goes out by itself").check()
    asks.locator("[name=carry][value=demand]").check()
    budget = asks.get_by_label("Budget of this trigger, US dollars a day")
    budget.fill("-1")
    budget.evaluate("field => field.form.noValidate = true")
    asks.get_by_role("button", name="Adopt for Armed").click()
    expect(asks.locator(".error")).to_contain_text("greater than or equal to 0")
    expect(budget).to_have_value("-1")
    expect(asks.get_by_label("goes out by itself")).to_be_checked()
    expect(asks.locator("[name=carry][value=demand]")).to_be_checked()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    budget.fill("0.25")
    asks.get_by_role("button", name="Adopt for Armed").click()
    expect(asks).to_contain_text("Adopted by Armed")
    page.goto(f"/agents/{slug}/budgets/")
    expect(page.get_by_label(re.compile("^Limit for the trigger of “mention-monitor”"))).to_have_value(
        re.compile("^0.25")
    )
    page.goto(f"/agents/{slug}/triggers/")
    page.get_by_text("Change mention-monitor").click()
    expect(page.locator("main")).to_contain_text("It acts by itself.")
    context.close()
