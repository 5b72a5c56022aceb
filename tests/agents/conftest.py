"""What tests of runs share: a model server on loopback that the site asks, and an agent."""

import asyncio
import gc
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from agents.llm import connecting
from agents.models import Agent
from tests import fakes
from tests.agents import on_demand, rows


@pytest.fixture(scope="module", autouse=True)
def connections_end_here() -> Iterator[None]:
    """litellm keeps its connections for as long as the process lives; a later test would be told of their end."""
    yield
    litellm = sys.modules.get("litellm")
    if litellm is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        litellm.in_memory_llm_clients_cache.flush_cache()
        connecting.guarded.cache_clear()
        connecting.direct.cache_clear()
        asyncio.set_event_loop(None)  # and an event loop that it made by asking for one
        gc.collect()


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


@pytest.fixture
def able(helper: Agent) -> Agent:
    """With a soul, and the tools that load skills on demand."""
    helper.soul = "system:\nI am S."
    on_demand.grant(helper, *on_demand.BOTH)
    return helper
