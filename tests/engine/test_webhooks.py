"""Requests from outside: genuine or not, which delivery, and what they say."""

import hashlib
import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine import webhooks
from marketplace.protocol.triggers.webhook import Param

SECRET = "whsec_test"
BODY = '{"b":1, "a":"é","n":1.0}'.encode()
SIGNED = "6b8cc5fb57308bdb96ff193a9a248b941f776ac4571edef68e01fa483c872899"
NOW = 1_760_000_000


def stripe(body: bytes = BODY, at: int = NOW, secret: str = SECRET) -> str:
    return f"t={at},v0=ff,v1={hmac.new(secret.encode(), f'{at}.'.encode() + body, hashlib.sha256).hexdigest()}"


@pytest.mark.parametrize(
    ("scheme", "headers", "body"),
    [
        ("github", {"x-hub-signature-256": f"sha256={SIGNED}"}, BODY),
        ("plain", {"x-signature": SIGNED}, BODY),
        ("plain", {"x-signature": f"sha256={SIGNED.upper()}"}, BODY),
        ("bearer", {"authorization": "Bearer whsec_test"}, BODY),
        ("stripe", {"stripe-signature": stripe()}, BODY),
        ("stripe", {"stripe-signature": stripe(at=NOW - 300)}, BODY),
        ("plain", {"x-signature": hmac.new(SECRET.encode(), b"", hashlib.sha256).hexdigest()}, b""),
        ("none", {}, b"anything"),
    ],
)
def test_a_request_signed_over_its_raw_bytes_is_genuine(scheme: str, headers: dict[str, str], body: bytes) -> None:
    assert webhooks.refusal(scheme, [SECRET], headers, body, NOW) == ""
    assert webhooks.refusal(scheme, ["a newer secret", SECRET], headers, body, NOW) == ""


@pytest.mark.parametrize(
    ("scheme", "headers"),
    [
        ("github", {"x-hub-signature-256": SIGNED}),
        ("github", {}),
        ("github", {"x-hub-signature-256": "sha256=defb33a93a6d" + "0" * 52}),
        ("plain", {"x-signature": "é" * 64}),
        ("plain", {"x-signature": ""}),
        ("bearer", {"authorization": "Basic whsec_test"}),
        ("bearer", {"authorization": "Bearer \udcff"}),
        ("stripe", {"stripe-signature": stripe(at=NOW - 301)}),
        ("stripe", {"stripe-signature": stripe(at=NOW + 301)}),
        ("stripe", {"stripe-signature": stripe(body=b"other")}),
        ("stripe", {"stripe-signature": "t=٣,v1=x"}),
        ("stripe", {"stripe-signature": "t=" + "9" * 400 + ",v1=x"}),
        ("stripe", {"stripe-signature": ",,,=,t=,v1"}),
    ],
)
def test_everything_else_is_refused_in_words(scheme: str, headers: dict[str, str]) -> None:
    assert webhooks.refusal(scheme, [SECRET], headers, BODY, NOW)


@pytest.mark.parametrize("scheme", sorted(set(webhooks.SCHEMES) - {"none"}))
def test_without_a_secret_nothing_is_genuine(scheme: str) -> None:
    empty = hmac.new(b"", BODY, hashlib.sha256).hexdigest()
    headers = {"x-signature": empty, "x-hub-signature-256": f"sha256={empty}", "authorization": "Bearer "}
    assert webhooks.refusal(scheme, [], headers, BODY, NOW) == "no secret is set"


@given(st.sampled_from(sorted(webhooks.SCHEMES)), st.dictionaries(st.text(), st.text()), st.binary())
def test_no_header_and_no_body_raises(scheme: str, headers: dict[str, str], body: bytes) -> None:
    said = webhooks.refusal(scheme, [SECRET], headers, body, NOW)
    assert (said == "") == (scheme == "none")
    read = webhooks.read_body(headers.get("content-type", ""), body)
    json.dumps(read, allow_nan=False).encode()
    assert len(webhooks.delivery_id(scheme, headers, body)) <= 200 and webhooks.kept_headers(headers) is not None


@pytest.mark.parametrize(
    ("kind", "body", "read"),
    [
        ("application/json", b'{"a": [1, "x"]}', {"a": [1, "x"]}),
        ("", b"", {}),
        ("text/plain", b"hello", "hello"),
        ("application/x-www-form-urlencoded; charset=utf-8", b"a=1&b=%C3%A9&c=", {"a": "1", "b": "é", "c": ""}),
        ("application/json", b'{"a": NaN}', '{"a": NaN}'),
        ("application/json", b"[" * 5_000, "[" * 5_000),
        ("application/json", b"[" * 60 + b"]" * 60, "[" * 60 + "]" * 60),
        ("application/json", b"9" * 5_000, "9" * 5_000),
        ("application/json", b'{"z": {"q": [-1e400]}}', '{"z": {"q": [-1e400]}}'),
        ("application/json", b'{"a": "\\u0000\\ud800"}', {"a": "\ufffd\ufffd"}),
        ("application/x-www-form-urlencoded", b"a=1&" * 2_000, "a=1&" * 2_000),
    ],
)
def test_a_body_is_read_as_what_it_is(kind: str, body: bytes, read: object) -> None:
    assert webhooks.read_body(kind, body) == read


def test_parameters_are_typed_and_missing_ones_named() -> None:
    params = [Param("city", "string", True), Param("days", "number"), Param("now", "boolean")]
    assert webhooks.arguments(params, {"city": "Lviv", "days": "3.5", "now": "TRUE", "x": 1}) == (
        {"city": "Lviv", "days": 3.5, "now": True},
        [],
    )
    assert webhooks.arguments(params, {"city": 7, "days": True, "now": 1})[1] == [
        "city is not a string",
        "days is not a number",
        "now is not a boolean",
    ]
    assert webhooks.arguments(params, "text") == ({}, ["city is missing"])
    assert webhooks.arguments(params, {"city": "x", "days": "1e999"})[1] == ["days is not a number"]


def test_headers_that_may_be_secrets_are_not_kept() -> None:
    sent = {"authorization": "Bearer x", "cookie": "a", "x-hub-signature-256": "s", "x-api-key": "k", "user-agent": "u"}
    sent |= {"idempotency-key": "i", "x-github-event": "push", "x-auth-token": "t"}
    assert webhooks.kept_headers(sent) == {"idempotency-key": "i", "user-agent": "u", "x-github-event": "push"}


def test_a_delivery_is_named_by_its_sender() -> None:
    assert webhooks.delivery_id("github", {"x-github-delivery": " 72d3 "}, b"") == "72d3"
    assert webhooks.delivery_id("stripe", {}, b'{"id": "evt_1"}') == "evt_1"
    assert webhooks.delivery_id("stripe", {}, b'{"id": 1}') == "" == webhooks.delivery_id("plain", {}, b'{"id": "x"}')
