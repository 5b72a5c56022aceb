"""Sign-in by link once, a time zone, and tokens that are shown once."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from marketplace.models import ApiToken, SignInLink, User
from tests.agents import rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    return rows.owner()


def test_a_link_signs_in_once(client: Client, alice: User) -> None:
    token = SignInLink.issue(alice, timezone.now())
    assert client.head(f"/sign-in/{token}/").status_code == 405  # what only looks does not use it up
    assert client.get(f"/sign-in/{token}/")["Location"] == "/agents/"
    assert client.get("/agents/").status_code == 200
    again = Client().get(f"/sign-in/{token}/")
    assert again.status_code == 410 and b"used already" in again.content


@pytest.mark.parametrize("token", ["nonsense", "%00", "日本", "a" * 500])
def test_a_link_that_was_never_made_signs_nobody_in(client: Client, token: str) -> None:
    assert client.get(f"/sign-in/{token}/").status_code == 410


def test_an_old_link_signs_nobody_in(client: Client, alice: User) -> None:
    token = SignInLink.issue(alice, timezone.now() - timedelta(days=2))
    assert client.get(f"/sign-in/{token}/").status_code == 410
    assert client.get("/agents/").status_code == 302


def test_a_link_of_somebody_who_may_no_longer_sign_in_is_refused(client: Client, alice: User) -> None:
    token = SignInLink.issue(alice, timezone.now())
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert client.get(f"/sign-in/{token}/").status_code == 410


def test_the_time_zone_is_chosen_and_nonsense_refused(client: Client, alice: User) -> None:
    client.force_login(alice)
    client.post("/account/", {"time_zone": "Asia/Kolkata"})
    alice.refresh_from_db()
    assert alice.time_zone == "Asia/Kolkata"
    assert client.post("/account/", {"time_zone": "../etc/passwd"}).status_code == 422
    alice.refresh_from_db()
    assert alice.time_zone == "Asia/Kolkata"


def test_a_token_is_shown_once_and_stored_hashed(client: Client, alice: User) -> None:
    client.force_login(alice)
    response = client.post("/account/tokens/", {"name": "script", "scopes": ["read"]})
    token = response.context["token"]
    assert token in response.content.decode() and "no-store" in response["Cache-Control"]
    row = ApiToken.objects.get()
    assert token not in str(row.__dict__) and row.scopes == ["read"]
    assert token not in client.get("/account/").content.decode()


def test_a_revoked_token_no_longer_works(client: Client, alice: User) -> None:
    token = ApiToken.issue(alice, "script", ["read"])
    header = {"Authorization": f"Bearer {token}"}
    assert client.get("/api/v1/runs", headers=header).status_code == 200
    client.force_login(alice)
    client.post(f"/account/tokens/{ApiToken.objects.get().pk}/revoke/")
    assert Client().get("/api/v1/runs", headers=header).status_code == 401


def test_a_token_needs_a_scope_that_exists(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert client.post("/account/tokens/", {"name": "x", "scopes": ["everything"]}).status_code == 422
    assert client.post("/account/tokens/", {"name": "x"}).status_code == 422
    assert not ApiToken.objects.exists()


def test_signing_in_with_a_password_and_out_again(client: Client, alice: User) -> None:
    page = client.get("/accounts/login/")
    assert page.status_code == 200 and b"Sign in" in page.content
    client.post("/accounts/login/", {"login": "alice", "password": "a long pass phrase"})
    assert client.get("/account/").status_code == 200
    assert client.get("/accounts/logout/").status_code == 200
    client.post("/accounts/logout/")
    assert client.get("/account/").status_code == 302


def test_sign_up_is_closed_unless_a_setting_opens_it(client: Client, settings: object) -> None:
    form = {"username": "mallory", "password1": "correct horse staple", "password2": "correct horse staple"}
    client.post("/accounts/signup/", form)
    assert not User.objects.filter(username="mallory").exists()
    settings.SIGN_UP_OPEN = True  # type: ignore[attr-defined]
    client.post("/accounts/signup/", form)
    assert User.objects.filter(username="mallory").exists()


@pytest.mark.parametrize("path", ["password/change/", "2fa/", "2fa/totp/activate/", "email/", "logout/"])
def test_every_page_of_the_account_is_in_the_sites_frame(client: Client, alice: User, path: str) -> None:
    client.force_login(alice)
    # Where the account must prove itself again, the password first.
    page = client.get(f"/accounts/{path}", follow=True)
    if "/reauthenticate/" in page.request["PATH_INFO"]:
        page = client.post(page.request["PATH_INFO"] + f"?next=/accounts/{path}", {"password": "a long pass phrase"})
        page = client.get(f"/accounts/{path}", follow=True)
    assert page.status_code == 200 and b'class="site"' in page.content and page.request["PATH_INFO"].endswith(path)


def test_an_account_without_a_password_is_offered_one_first(client: Client, alice: User) -> None:
    alice.set_unusable_password()
    alice.save()
    client.force_login(alice)
    page = client.get("/account/").content.decode()
    assert "/accounts/password/set/" in page and "/accounts/2fa/" not in page
    assert client.get("/accounts/password/set/").status_code == 200
