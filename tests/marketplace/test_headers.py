"""What every answer carries, and that no template breaks the policy it carries."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from marketplace.models import User

pytestmark = pytest.mark.django_db
ROOT = Path(settings.BASE_DIR)


@pytest.mark.parametrize("path", ["/", "/triggers/", "/nothing-here/", "/api/v1/skills", "/api/v1/docs"])
def test_every_answer_carries_the_policy(client: Client, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "base-uri 'none'" in policy
    assert "unsafe" not in policy and "*" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_what_an_owner_sees_is_never_stored(client: Client) -> None:
    client.force_login(User.objects.create_user("alice"))
    for path in ("/", "/triggers/", "/nothing-here/", "/drafts/"):
        assert "no-store" in client.get(path)["Cache-Control"], path


def test_a_signed_out_page_sets_no_cookie(client: Client) -> None:
    assert not client.get("/").cookies


def test_errors_say_what_happened_in_a_page_or_a_part(client: Client) -> None:
    page = client.get("/nothing-here/").content.decode()
    assert "Nothing was lost" in page and "</html>" in page
    part = client.get("/nothing-here/", headers={"HX-Request": "true"})
    assert part.status_code == 404
    assert part.content.decode().startswith('<p class="notice notice-error"')


def test_a_form_without_its_token_is_told_why(django_user_model: type[User]) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(django_user_model.objects.create_user("bob"))
    response = client.post("/drafts/save/")
    assert response.status_code == 403
    assert "too old" in response.content.decode()


def test_no_template_needs_inline_style_or_script() -> None:
    templates = list((ROOT / "templates").rglob("*.html"))
    assert templates
    for template in templates:
        text = template.read_text()
        assert not re.search(r"\sstyle=", text), template
        assert not re.search(r"\son[a-z]+=", text), template
        assert "hx-on" not in text and "javascript:" not in text and "js:" not in text, template
        assert not re.search(r"<script(?![^>]*\bsrc=)(?![^>]*type=\"application/json\")", text), template
        # Conditions of a trigger in brackets would be compiled from text, which the policy forbids.
        assert not re.search(r"hx-trigger=\"[^\"]*\[", text), template


def test_our_own_javascript_stays_small() -> None:
    lines = sum(len(path.read_text().splitlines()) for path in (ROOT / "static/js").rglob("*.js"))
    assert lines <= 500
