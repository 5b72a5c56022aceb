"""Money in a real browser: a tiny budget stops a run in words, warns, tells the admin; a model is given a price."""

import re
from decimal import Decimal
from typing import Any

from playwright.sync_api import expect

from marketplace.protocol import nip19, nostr
from tests import fakes
from tests.browser.test_engine import letters
from tests.stack import Stack, eventually


def new_agent(page: Any, name: str) -> str:
    """An agent of its own, so that no other test's money counts; its slug."""
    page.goto("/agents/new/")
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name=re.compile("^Make")).click()
    page.wait_for_url(re.compile("/settings/$"))
    return str(page.url.rstrip("/").split("/")[-2])


def limit(page: Any, slug: str, what: str, amount: str) -> None:
    """One more budget, or another limit for the one there is."""
    page.goto(f"/agents/{slug}/budgets/")
    page.get_by_label("One more budget for").select_option(label=what)
    page.get_by_label("Limit, US dollars", exact=True).fill(amount)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("main")).to_contain_text("are saved")


def say(page: Any, slug: str, message: str) -> None:
    page.goto(f"/runs/start/?agent={slug}")
    page.get_by_label("Message", exact=True).fill(message)
    page.get_by_role("button", name="Run", exact=True).click()


def test_a_tiny_budget_stops_a_run_and_says_so(site: Stack, page: Any, models: fakes.ModelServer) -> None:
    slug = new_agent(page, "Thrifty")
    main = page.locator("main")
    page.goto(f"/agents/{slug}/budgets/")
    day = page.get_by_label(re.compile("^Limit for Thrifty, a day"))
    day.fill("0.004")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(main).to_contain_text("are saved")

    # One call may cost 0.0025 and a little for its question; it costs 0.00321.
    models.script(fakes.text("Spent.", prompt_tokens=20_000, completion_tokens=350))
    say(page, slug, "spend it")
    expect(main).to_contain_text("Spent.", timeout=20_000)
    expect(main).to_contain_text("succeeded")
    asked = len(models.asked)
    say(page, slug, "and once more")
    expect(main).to_contain_text("failed", timeout=20_000)
    expect(main).to_contain_text("The budget for Thrifty, a day, is 0.004 USD, 0.00321 is used")
    assert len(models.asked) == asked

    page.get_by_role("link", name="Its budgets").click()
    meter = page.locator("meter").first
    assert Decimal(meter.get_attribute("value")) == 80
    expect(main).to_contain_text("is 80 % used: 0.00321 of 0.004 USD")
    expect(main).to_contain_text("What the admin was told")
    expect(main).to_contain_text("a run was stopped")
    page.goto(f"/agents/{slug}/")
    expect(page.locator(".notice-warning").filter(has_text="is 80 % used").first).to_be_visible()
    page.goto("/costs/")
    expect(main).to_contain_text("nearly used up")


def test_the_admin_reads_of_it_in_a_private_message(site: Stack, page: Any, models: fakes.ModelServer) -> None:
    """By tick, broker, worker and relay; once."""
    admin = nostr.generate_secret()
    slug = new_agent(page, "Teller")
    page.locator("#id_admin_pubkey").fill(nip19.encode_npub(nostr.public_key(admin)))
    page.get_by_role("button", name="Save", exact=True).click()
    page.goto(f"/agents/{slug}/budgets/")
    page.get_by_label(re.compile("^Limit for Teller, a day")).fill("0.004")
    page.get_by_role("button", name="Save", exact=True).click()
    models.script(fakes.text("Spent.", prompt_tokens=20_000, completion_tokens=350))
    say(page, slug, "spend it")
    expect(page.locator("main")).to_contain_text("Spent.", timeout=20_000)
    found = eventually(60, lambda: letters(site, admin), "a message")
    assert isinstance(found, list)
    assert [text.partition(" http")[0] for _, text in found] == [
        "The budget for Teller, a day, is 80 % used: 0.00321 of 0.004 USD."
    ]
    page.goto(f"/agents/{slug}/budgets/")
    expect(page.locator("main")).to_contain_text("What the admin was told")
    eventually(20, lambda: page.reload() and page.get_by_text("on its way").count() == 0, "it is sent")
    assert len(letters(site, admin)) == 1


def test_a_wrong_limit_is_said_beside_its_field_and_kept(site: Stack, browser: Any, signed_in: str) -> None:
    """In a tab of its own: the console complains about the answer, which is 422."""
    context = browser.new_context(storage_state=signed_in, base_url=site.url)
    page = context.new_page()
    page.goto("/agents/demo/budgets/")
    day = page.get_by_label(re.compile("^Limit for Demo agent, a day"))
    day.fill("-1")
    day.evaluate("field => field.form.noValidate = true")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("main")).to_contain_text("Nothing is saved yet")
    expect(page.locator(".error")).to_contain_text("greater than or equal to 0")
    assert page.get_by_label(re.compile("^Limit for Demo agent, a day")).input_value() == "-1"
    context.close()


def test_a_cap_of_single_runs_is_set_and_taken_away(site: Stack, page: Any, models: fakes.ModelServer) -> None:
    slug = new_agent(page, "Capped")
    main = page.locator("main")
    limit(page, slug, "each single run", "0.000001")
    say(page, slug, "too dear")
    expect(main).to_contain_text("The budget for each run of Capped, at most, is 0.000001 USD", timeout=20_000)
    page.goto(f"/agents/{slug}/budgets/")
    page.get_by_label(re.compile("^Limit for each run of Capped")).fill("")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(main).to_contain_text("are saved")
    models.script(fakes.text("Now it may."))
    say(page, slug, "again")
    expect(main).to_contain_text("Now it may.", timeout=20_000)


def test_a_price_is_said_and_the_past_is_priced_anew(site: Stack, page: Any, models: fakes.ModelServer) -> None:
    slug = new_agent(page, "Pricer")
    main = page.locator("main")
    models.script(fakes.text("Cheap.", prompt_tokens=1_000, completion_tokens=100))
    say(page, slug, "cheap")
    expect(main).to_contain_text("Cheap.", timeout=20_000)
    expect(main).to_contain_text("0.15 in")
    run = page.url
    page.goto(f"/agents/{slug}/models/?model=openai/gpt-4o-mini#own")
    page.get_by_label("Input, US dollars per million tokens", exact=True).fill("10")
    page.get_by_label("Output, US dollars per million tokens", exact=True).fill("20")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(main).to_contain_text("it holds from the next run on")
    page.goto(run)
    page.get_by_role("button", name="Price anew").click()
    expect(main).to_contain_text("What was charged is not changed.")
    expect(main).to_contain_text("by a later price $0.012")
    expect(main).to_contain_text("$0.00021")
    models.script(fakes.text("Dear.", prompt_tokens=1_000, completion_tokens=100))
    say(page, slug, "dear")
    expect(main).to_contain_text("Dear.", timeout=20_000)
    expect(main).to_contain_text("own prices")
    expect(main).to_contain_text("0.012")


def test_the_pages_of_money_hold_at_360_pixels(site: Stack, page: Any) -> None:
    slug = new_agent(page, "Narrow")
    page.set_viewport_size({"width": 360, "height": 800})
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for path in (
            f"/agents/{slug}/budgets/",
            f"/agents/{slug}/models/",
            "/costs/?prices=repriced",
            "/operate/budgets/",
        ):
            assert page.goto(path).status == 200, path
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
