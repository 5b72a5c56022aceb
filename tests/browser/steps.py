"""What several browser tests do first."""

import re
from collections.abc import Iterable
from typing import Any

from playwright.sync_api import expect


def new_agent(page: Any, name: str, admin: str = "", grants: Iterable[str] = ()) -> str:
    """An agent of the owner, and the one that adopts from now on; its slug."""
    page.goto("/agents/new/")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Make the agent").click()
    page.wait_for_url(re.compile(r"/agents/(?!new)[^/]+/"))
    slug = re.search(r"/agents/([^/]+)/", page.url)
    assert slug
    if admin:
        page.goto(f"/agents/{slug[1]}/settings/")
        page.locator("#id_admin_pubkey").fill(admin)
        page.get_by_role("button", name="Save", exact=True).first.click()
        expect(page.locator("main")).to_contain_text("are saved")
    page.goto(f"/agents/{slug[1]}/grants/")
    for tool in grants:
        page.locator(f"input[name=grant][value={tool}]").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".notices")).to_contain_text("tools")
    with page.expect_navigation():  # the whole page speaks of the agent and comes anew
        page.locator("#acting-agent").select_option(slug[1])
    expect(page.locator("#acting-agent")).to_have_value(slug[1])
    return slug[1]
