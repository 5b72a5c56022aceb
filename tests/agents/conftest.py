"""What tests of runs share: a model server on loopback that the site asks, and an agent."""

from collections.abc import Iterator
from typing import Any

import pytest

from agents.models import Agent
from tests import fakes
from tests.agents import rows


@pytest.fixture
def models(settings: Any) -> Iterator[fakes.ModelServer]:
    with fakes.ModelServer() as server:
        settings.LLM_BASE_URL = server.url
        settings.LLM_API_KEY = "site-key-CANARY-1234"
        settings.LLM_TIMEOUT = 10
        yield server


@pytest.fixture
def helper(db: None) -> Agent:
    return rows.agent(rows.owner())
