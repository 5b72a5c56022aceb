"""Names for keys, events and addresses (NIP-19, NIP-21)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marketplace.protocol import nip19
from marketplace.protocol.events import Address
from tests.events import A

# The examples of NIP-19 itself.
NPUB = "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg"
NPUB_HEX = "7e7e9c42a91bfef19fa929e5fda1b72e0ebc1a4c1141673e2794234d86addf4e"
NPROFILE = (
    "nprofile1qqsrhuxx8l9ex335q7he0f09aej04zpazpl0ne2cgukyawd24mayt8gpp4mhx"
    "ue69uhhytnc9e3k7mgpz4mhxue69uhkg6nzv9ejuumpv34kytnrdaksjlyr9p"
)
NSEC = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"


def test_the_examples_of_the_standard() -> None:
    assert nip19.encode_npub(NPUB_HEX) == NPUB
    assert nip19.decode(NPUB) == nip19.Npub(NPUB_HEX)
    profile = nip19.decode(f"nostr:{NPROFILE}")
    assert profile == nip19.Nprofile(
        "3bf0c63fcb93463407af97a5e5ee64fa883d107ef9e558472c4eb9aaaefa459d", ("wss://r.x.com", "wss://djbas.sadkb.com")
    )


@settings(max_examples=40)
@given(st.text(st.characters(codec="utf-8"), max_size=60), st.integers(0, 65_535))
def test_an_address_survives_its_naddr(d: str, kind: int) -> None:
    address = Address(kind, A, d)
    for text in (nip19.encode_naddr(address, ["wss://relay.example"]), nip19.encode_naddr(address).upper()):
        found = nip19.decode(text)
        assert isinstance(found, nip19.Naddr)
        assert found.address == address


def test_events_have_two_names() -> None:
    assert nip19.decode(nip19.encode_note(A)) == nip19.Note(A)
    assert nip19.decode(nip19.encode_nevent(A, ["wss://x"])) == nip19.Nevent(A, ("wss://x",))


@pytest.mark.parametrize("text", [NPUB, NPUB_HEX, NPUB_HEX.upper(), f"nostr:{NPUB}", f"  {NPUB.upper()}\n"])
def test_a_key_is_read_in_any_spelling(text: str) -> None:
    assert nip19.read_key(text) == NPUB_HEX


@pytest.mark.parametrize("text", [NSEC, f"nostr:{NSEC}", NSEC.upper(), f"my key {NSEC}"])
def test_a_private_key_is_refused_and_not_repeated(text: str) -> None:
    assert nip19.looks_like_nsec(text)
    with pytest.raises(ValueError, match="private key") as refusal:
        nip19.read_key(text)
    assert NSEC not in str(refusal.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "npub1",
        NPUB[:-1],
        NPUB.replace("q", "p", 1),
        NPUB[:10].upper() + NPUB[10:],
        "naddr1qqqqqq",
        "é" * 9,
        "1" * 9_000,
    ],
)
def test_typing_mistakes_are_value_errors(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        nip19.decode(text)


@settings(max_examples=40)
@given(st.text(max_size=80))
def test_nothing_but_value_error_is_raised(text: str) -> None:
    for prefix in ("", "naddr1", "nprofile1", "nostr:"):
        with pytest.raises(ValueError, match=r"\w"):
            nip19.decode(prefix + text)


def test_a_name_too_long_for_an_naddr_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="255"):
        nip19.encode_naddr(Address(31123, A, "x" * 256))


def test_the_short_form_keeps_both_ends() -> None:
    assert nip19.short_npub(NPUB_HEX) == "npub10elfc…jptg"
