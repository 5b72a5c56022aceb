"""Every page that a link leads to: no violation of accessibility, nothing wider than the screen, in both themes."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urldefrag, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import Resolver404, resolve

from tests import fakes
from tests.stack import Stack, eventually

WCAG = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
LINKS = "[...document.querySelectorAll('a[href]:not([download])')].map(a => a.href)"
MOST = 150  # pages; there are fewer kinds of them


def kind(url: str) -> str:
    """Pages of one kind are looked at once, and once more for each ?tab=."""
    parts = urlsplit(url)
    try:
        name = resolve(parts.path).view_name
    except Resolver404:
        return parts.path
    return f"{name}?{parts.query if parts.query.startswith('tab=') else ''}"


def pages(tab: Any, site: Stack) -> Iterator[str]:
    """Opens one page of every kind, from link to link."""
    wanted, seen = [f"{site.url}/"], set[str]()
    while wanted and len(seen) < MOST:
        url = wanted.pop(0)
        if kind(url) in seen:
            continue
        seen.add(kind(url))
        answer = tab.goto(url)
        assert answer.status < 500, url
        if answer.headers.get("content-type", "").startswith("text/html"):
            yield url
            links = [urldefrag(link).url for link in tab.evaluate(LINKS)]
            wanted += [link for link in links if link.startswith(f"{site.url}/") and "/api/" not in link]
    assert not wanted or len(seen) < MOST


def complaints(tab: Any, url: str) -> list[str]:
    found = Axe().run(tab, options=WCAG).response["violations"]
    words = [f"{url}: {one['id']}: {node['html'][:160]}" for one in found for node in one["nodes"][:3]]
    if not tab.evaluate("document.documentElement.scrollWidth <= innerWidth"):
        words.append(f"{url}: wider than the screen")
    return words


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (360, "dark")])
def test_an_owner_meets_no_barrier(site: Stack, page: Any, models: fakes.ModelServer, width: int, theme: str) -> None:
    models.script(fakes.text("Here is a run to look at.", prompt_tokens=100, completion_tokens=10))
    page.goto("/runs/start/?agent=demo")
    page.get_by_label("Message").fill("a run to look at")
    page.get_by_role("button", name="Run", exact=True).click()
    eventually(20, lambda: "succeeded" in page.locator("main").inner_text(), "the run ends")
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    found = [words for url in pages(page, site) for words in complaints(page, url)]
    assert found == []


def test_a_visitor_meets_no_barrier(site: Stack, browser: Any) -> None:
    tab = browser.new_page(base_url=site.url, viewport={"width": 360, "height": 800})
    found = [words for url in pages(tab, site) for words in complaints(tab, url)]
    tab.close()
    assert found == []
