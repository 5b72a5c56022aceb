"""Talking to an agent in a real browser: text as it comes, calls in place, stopping, names by slash, no script."""

import re
from typing import Any

from playwright.sync_api import expect

from tests import fakes
from tests.armed import shell
from tests.browser.test_every_page import complaints
from tests.stack import Stack

ON_DEMAND = """
from agents.models import AdoptedSkill
print(AdoptedSkill.objects.filter(agent__slug="demo", address__endswith=":plain-words").update(on_demand=True))
"""


def begin(page: Any, message: str) -> None:
    page.goto("/agents/demo/talk/")
    page.get_by_label("Message").fill(message)
    page.get_by_label("Message").press("Control+Enter")
    page.wait_for_url(re.compile(r"/agents/demo/talk/\d+/"))


def test_an_answer_appears_as_it_comes_with_its_calls_in_place(
    site: Stack, page: Any, models: fakes.ModelServer
) -> None:
    long = fakes.text("One **two** three four five <b>six</b>.", prompt_tokens=1000, completion_tokens=100)
    long.pieces, long.pause = 8, 0.7
    models.script(fakes.calls(("a", "skill_list", {})), long)
    begin(page, "Count to six.")
    main, answer = page.locator("main"), page.locator(".answer")
    expect(answer).to_contain_text("One", timeout=20_000)
    assert "six" not in answer.inner_text()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    page.get_by_label("Message").fill("typed meanwhile")
    expect(answer).to_contain_text("<b>six</b>", timeout=20_000)
    expect(answer.locator("strong")).to_have_text("two")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(page.get_by_label("Message")).to_have_value("typed meanwhile")
    call = page.locator("details.did")
    expect(call).to_have_count(1)
    call.locator("summary").click()
    expect(call).to_contain_text("skill_list")
    expect(main).to_contain_text("1 turn, $0.0")
    page.get_by_label("Message").fill("")
    models.script(fakes.text("Seven."))
    page.get_by_label("Message").fill("And then?")
    page.get_by_role("button", name="Send").click()
    expect(main).to_contain_text("Seven.", timeout=20_000)
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 900})
        assert complaints(page, page.url) == []
    said = [message["content"] for message in models.asked[-1]["messages"] if message["role"] != "system"]
    assert said[-3:] == ["Count to six.", "One **two** three four five <b>six</b>.", "And then?"]


def test_stop_ends_what_is_being_answered(site: Stack, page: Any, models: fakes.ModelServer) -> None:
    slow = fakes.text("never")
    slow.delay = 25
    models.script(slow)
    begin(page, "Think for long.")
    expect(page.locator("main")).to_contain_text("running", timeout=20_000)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("main")).to_contain_text("You stopped it.")
    models.script(fakes.text("Here I am."))
    page.get_by_label("Message").fill("Still there?")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("main")).to_contain_text("Here I am.", timeout=20_000)


def test_a_skills_name_is_completed_and_loads_it(site: Stack, page: Any, models: fakes.ModelServer) -> None:
    page.goto("/?q=plain-words")
    page.get_by_role("link", name="plain-words", exact=True).click()
    page.get_by_role("button", name=re.compile("^Adopt for")).click()
    expect(page.get_by_text("Adopted by Demo agent")).to_be_visible()
    assert shell(site, ON_DEMAND) == "1"
    page.goto("/agents/demo/talk/")
    area = page.get_by_label("Message")
    area.press_sequentially("Say it simply /pl")
    expect(page.locator("#completions").get_by_role("option")).to_have_text(["/plain-words"])
    area.press("Enter")
    expect(area).to_have_value("Say it simply /plain-words ")
    models.script(fakes.text("Simply said."))
    area.press("Control+Enter")
    expect(page.locator("main")).to_contain_text("Simply said.", timeout=20_000)
    assert 'skill_content name="plain-words"' in str(models.asked[-1]["messages"])


def test_it_works_without_a_script(site: Stack, browser: Any, signed_in: str, models: fakes.ModelServer) -> None:
    context = browser.new_context(storage_state=signed_in, base_url=site.url, java_script_enabled=False)
    page = context.new_page()
    page.set_viewport_size({"width": 360, "height": 740})
    models.script(fakes.text("Without a script."))
    page.goto("/agents/demo/talk/")
    page.get_by_label("Message").fill("Hello")
    page.get_by_role("button", name="Send").click()
    for _ in range(40):
        if "Without a script." in page.locator("main").inner_text():
            break
        page.wait_for_timeout(500)
        page.reload()
    expect(page.locator(".answer")).to_have_text("Without a script.")
    context.close()
