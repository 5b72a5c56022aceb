"""A private key in an address is shown nowhere, kept nowhere, logged nowhere."""

import logging

import pytest
from django.test import Client

NSEC = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"  # of NIP-19's own example

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "address",
    [
        f"/{NSEC}",
        f"/skills/{NSEC}/",
        f"/SKILLS/{NSEC.upper()}/",
        f"/?q={NSEC}",
        f"/?q=%6e{NSEC[1:]}",
        f"/?topic={NSEC}&author={NSEC}",
        f"/?{NSEC}=1",
        f"/triggers/?q=a+{NSEC}",
        f"/authors/{NSEC}/",
        f"/runs/?skill={NSEC}&model={NSEC}",
        f"/costs/?group={NSEC}",
        f"/api/v1/skills?q={NSEC}",
        f"/api/v1/skills/{NSEC}",
        f"/api/v1/costs?group={NSEC}",
        f"/events/{NSEC}/",
    ],
)
@pytest.mark.parametrize("signed_in", [False, True])
def test_an_address_with_a_key_repeats_it_nowhere(
    client: Client, django_user_model, caplog: pytest.LogCaptureFixture, address: str, signed_in: bool
) -> None:
    if signed_in:
        client.force_login(django_user_model.objects.create_user("alice"))
    with caplog.at_level(logging.DEBUG):
        response = client.get(address, HTTP_REFERER=f"http://testserver/{NSEC}", RAW_URI=address, follow=True)
    assert response.status_code < 500
    shown = response.content.decode() + str(response.headers) + str(response.redirect_chain) + caplog.text
    assert NSEC[:30] not in shown.lower()


def test_a_search_for_a_key_says_that_it_is_leaked(client: Client) -> None:
    assert "treat it as leaked" in client.get(f"/?q={NSEC}").content.decode()


def test_other_addresses_are_left_as_they_are(client: Client) -> None:
    response = client.get("/?q=what+is+an+nsec%31&topic=%F0%9F%A6%A9")
    assert response.wsgi_request.META["QUERY_STRING"] == "q=what+is+an+nsec%31&topic=%F0%9F%A6%A9"


def test_a_line_of_the_log_holds_no_key_and_no_traceback_for_a_strangers_request(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    from marketplace.logs import Tidy

    records: list[logging.LogRecord] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    handler = Kept()
    handler.addFilter(Tidy())
    logging.getLogger().addHandler(handler)
    try:
        client.get("/", HTTP_HOST="evil.example")
        logging.getLogger("agents").warning("found %s in a note", NSEC)
        client.post("/hooks/JHz1lJ6E-secret", b"{}", content_type="application/json")
        try:
            raise RuntimeError("ours")
        except RuntimeError:
            logging.getLogger("django.request").exception("broken", extra={"status_code": 500})
    finally:
        logging.getLogger().removeHandler(handler)
    hosts = [record for record in records if "evil.example" in record.getMessage()]
    assert hosts and all(record.exc_info is None for record in hosts)
    assert any("/hooks/…" in record.getMessage() for record in records)
    assert not any("JHz1lJ6E" in record.getMessage() for record in records)
    assert "found nsec1… in a note" in [record.getMessage() for record in records]
    assert any(record.exc_info for record in records if record.getMessage() == "broken")
