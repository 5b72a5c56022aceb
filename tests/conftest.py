"""What most tests share: keys, a real relay, and sockets that reach only this machine."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from pytest_socket import socket_allow_hosts

from tests.keys import Keys
from tests.real_relay import LocalRelay


@pytest.fixture(autouse=True)
def only_this_machine() -> None:
    """No test reaches the network, by accident or otherwise."""
    socket_allow_hosts(["127.0.0.1", "::1", "localhost"], allow_unix_socket=True)


@pytest.fixture(scope="session")
def keys() -> Keys:
    return Keys()


@pytest.fixture
def relay(settings: object) -> Iterator[LocalRelay]:
    """An empty relay that the site counts as its own."""
    with LocalRelay() as running:
        settings.RELAYS = settings.WRITE_RELAYS = [running.url]  # type: ignore[attr-defined]
        settings.EMBEDDED_RELAY_URL = running.url  # type: ignore[attr-defined]
        yield running


@pytest.fixture(autouse=True)
def empty_shelf() -> None:
    """Pages are kept by catalogue version, and every test starts again at version 0."""
    from marketplace.views import kept

    kept.shelf.clear()


@pytest.fixture
def django_assert_max_num_queries(
    django_assert_max_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., AbstractContextManager[Any]]:
    """Queries of the page itself: banners are looked up every few seconds, by whichever page comes then."""

    @contextmanager
    def counted(*args: Any, **options: Any) -> Iterator[Any]:
        with monkeypatch.context() as patched, django_assert_max_num_queries(*args, **options) as captured:
            patched.setattr("agents.views.health._cached", lambda key, make: [])
            yield captured

    return counted
