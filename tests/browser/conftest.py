"""One running product and one Chromium for all browser tests, on the embedded defaults."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import ModelServer
from tests.stack import Stack, eventually

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run", "--disable-sync"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if CHROMIUM is None:
                item.add_marker(pytest.mark.skip(reason="no Chromium on this machine"))


@pytest.fixture(scope="session")
def models() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, models: ModelServer) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("site")
    environment = {
        "JOURNEYMAN_LLM_BASE_URL": models.url,
        "JOURNEYMAN_LLM_API_KEY": "test",
        "JOURNEYMAN_DEFAULT_LLM": "openai/gpt-4o-mini",
        "JOURNEYMAN_TRIGGER_COOLDOWN": "0",
        "OPENAI_API_KEY": "",
    }
    with Stack(folder, **environment) as stack:
        eventually(60, stack.healthy, "everything is ok")
        yield stack


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Closed when the tests here make way for others: its event loop would stand in theirs."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def signed_in(site: Stack, browser: Any) -> str:
    """Cookies of the owner, from a one-time link."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(site.manage("sign_in_link").split()[-1])
    assert page.url.endswith("/agents/")
    state: str = context.storage_state()
    context.close()
    return state


@pytest.fixture(autouse=True)
def nothing_left_to_say(models: ModelServer) -> None:
    """What another test scripted and did not hear is not for this one."""
    models.answers.clear()
    models.by_model.clear()


@pytest.fixture
def page(site: Stack, browser: Any, signed_in: Any) -> Iterator[Any]:
    """A tab of the owner, acting for the demo agent; anything the console complains about fails the test."""
    context = browser.new_context(storage_state=signed_in, base_url=site.url, viewport={"width": 1280, "height": 900})
    token = next(cookie["value"] for cookie in signed_in["cookies"] if cookie["name"].startswith("csrf"))
    sent = {"agent": "demo", "csrfmiddlewaretoken": token}
    assert context.request.post("/agents/switch/", form=sent, headers={"Referer": site.url}).ok
    tab = context.new_page()
    complaints: list[str] = []
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    tab.set_default_timeout(10_000)
    yield tab
    context.close()
    # Leaving a page ends what it was still fetching.
    assert [words for words in complaints if "AbortError" not in words] == []
