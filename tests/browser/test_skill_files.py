"""Skills as files in a real browser: switched on demand, uploaded as a folder, brought in as a draft, taken out again."""

import json
import re
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests import zips
from tests.browser.steps import new_agent
from tests.browser.test_main_job import adopt
from tests.stack import Stack

RULES = "---\nname: invoice-check\ndescription: Checks an invoice against its order\n---\nSee references/rules.md\n"


def test_the_switch_says_what_it_costs_and_keeps_the_place(site: Stack, page: Any) -> None:
    slug = new_agent(page, "Switcher")
    adopt(page, "plain-words", "Switcher")
    page.goto(f"/agents/{slug}/skills/")
    row = page.locator(".order > li").filter(has_text="plain-words")
    always, demand = (
        row.get_by_role("button", name=re.compile("^always on")),
        row.get_by_role("button", name=re.compile("^on demand")),
    )
    expect(always).to_have_attribute("aria-pressed", "true")
    page.evaluate("window.here = true")
    demand.click()
    expect(demand).to_have_attribute("aria-pressed", "true")
    expect(always).to_have_attribute("aria-pressed", "false")
    assert page.evaluate("window.here")  # only the list was loaded anew
    always.click()
    expect(always).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(always).to_have_attribute("aria-pressed", "true")
    row.get_by_role("button", name=re.compile("^Un-adopt")).click()
    expect(page.locator(".notices")).to_contain_text("no longer adopts plain-words")


def test_a_folder_is_uploaded_looked_into_and_removed(site: Stack, page: Any) -> None:
    page.goto("/agents/demo/skills/")
    page.get_by_role("link", name="Skills in folders").click()
    data = zips.zipped({"invoice-check/SKILL.md": RULES, "invoice-check/references/rules.md": "Rule 1"})
    file = {"name": "good.zip", "mimeType": "application/zip", "buffer": data}
    page.get_by_label("A skill's folder, as a zip").set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    expect(page.locator(".notices")).to_contain_text("has the folder invoice-check, 2 files")
    row = page.locator("tbody tr").filter(has_text="invoice-check")
    row.get_by_text("1 other file").click()
    expect(row.get_by_text("references/rules.md")).to_be_visible()
    row.locator("summary", has_text="Remove").click()
    row.get_by_role("button", name="Remove its 2 files for good").click()
    expect(page.locator("main")).to_contain_text("None yet")


def test_a_skill_is_taken_out_as_a_file_and_brought_in_as_a_draft(site: Stack, page: Any, tmp_path: Path) -> None:
    page.goto("/")
    page.get_by_role("link", name="spellcheck", exact=True).first.click()
    with page.expect_download() as download:
        page.get_by_role("link", name="SKILL.md", exact=True).click()
    file = Path(download.value.path())
    assert download.value.suggested_filename == "SKILL.md" and file.read_text().startswith("---\nname: spellcheck\n")
    page.goto("/drafts/")
    page.get_by_role("link", name="Import a SKILL.md").click()
    page.get_by_label("Or a file").set_input_files(file)
    page.get_by_role("button", name="Make a draft of it").click()
    expect(page.locator(".notices")).to_contain_text("Nothing is published yet")
    expect(page.get_by_label("Name", exact=True)).to_have_value("spellcheck")
    expect(page.get_by_label("Model chain")).to_have_value("openai/gpt-4o-mini, cheap")
    assert json.dumps(page.get_by_label("Template").input_value()).startswith('"system:\\nYou correct spelling')


def test_what_is_refused_is_said_beside_its_field(site: Stack, browser: Any, signed_in: str) -> None:
    """In a tab of its own: the console counts a 422 as an error."""
    context = browser.new_context(storage_state=signed_in, base_url=site.url)
    tab = context.new_page()
    tab.goto("/agents/demo/folders/")
    file = {"name": "bad.zip", "mimeType": "application/zip", "buffer": b"no zip"}
    tab.get_by_label("A skill's folder, as a zip").set_input_files(file)
    tab.get_by_role("button", name="Upload").click()
    expect(tab.locator(".field .error")).to_contain_text("not a zip file")
    tab.goto("/drafts/import/")
    tab.get_by_label("Text of a SKILL.md").fill("# no front matter")
    tab.get_by_role("button", name="Make a draft of it").click()
    expect(tab.locator(".field .error")).to_contain_text("line 1")
    expect(tab.get_by_label("Text of a SKILL.md")).to_have_value("# no front matter")
    context.close()
