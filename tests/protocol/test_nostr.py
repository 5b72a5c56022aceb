"""Signing and encryption: what nostr_sdk makes passes our own checks."""

import pytest
from nostr_sdk import nostr_sdk as bindings

from marketplace.protocol import checks, nostr
from marketplace.protocol.events import Draft, Event
from tests.events import NOW, SECRET_A, SECRET_B, A, B


def test_a_signed_draft_passes_our_checks() -> None:
    draft = Draft(A, NOW, 31123, (("d", "x"), ("t", "é\x01")), "🍕 \x7f \u2028" + "x" * 60_000)
    event = nostr.sign(draft, SECRET_A)
    assert checks.check(event.to_json()) == event
    assert event.id == draft.id


def test_a_foreign_key_signs_nothing() -> None:
    with pytest.raises(ValueError, match="does not belong"):
        nostr.sign(Draft(B, NOW, 1, (), ""), SECRET_A)


def test_keys_are_read_in_both_spellings() -> None:
    secret = "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa"  # the example of NIP-19
    assert nostr.read_secret(" nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5\n") == secret
    assert nostr.read_secret(secret) == secret
    assert nostr.public_key(SECRET_A) == A
    assert nostr.public_key(nostr.generate_secret()) != nostr.public_key(nostr.generate_secret())


@pytest.mark.parametrize("text", ["", "nsec1qqq", "x" * 64, A[:-1]])
def test_a_wrong_key_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ValueError, match="private key") as refusal:
        nostr.read_secret(text)
    assert not text or text not in str(refusal.value)


def test_a_private_skill_is_read_in_all_three_forms() -> None:
    text = '{"template":"é"}'
    assert nostr.decrypt_own(SECRET_A, A, nostr.encrypt_to_self(SECRET_A, text)) == text
    assert nostr.decrypt_own(SECRET_A, A, text) == text
    sdk = nostr._sdk()
    old = sdk.nip04_encrypt(sdk.SecretKey.parse(SECRET_A), sdk.PublicKey.parse(A), text)
    assert nostr.decrypt_own(SECRET_A, A, old) == text


def test_what_is_not_for_this_key_cannot_be_read() -> None:
    with pytest.raises(ValueError, match="cannot be decrypted"):
        nostr.decrypt_own(SECRET_B, B, nostr.encrypt_to_self(SECRET_A, "x"))
    with pytest.raises(ValueError, match="cannot be decrypted"):
        nostr.decrypt_own(SECRET_A, A, "nonsense")


def test_the_patched_names_of_the_bindings_still_exist() -> None:
    sdk = nostr._sdk()
    assert bindings._UniffiRustBufferBuilder.write.__module__ == nostr.__name__
    assert callable(bindings._UniffiRustBuffer.reserve)
    assert {"_pack_into", "write"} <= vars(bindings._UniffiRustBufferBuilder).keys()
    text = Event.from_dict(nostr.sign(Draft(A, NOW, 1, (), "é" * 9_000), SECRET_A).to_dict()).to_json()
    assert sdk.Event.from_json(text).verify()
