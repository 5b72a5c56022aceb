"""Direct messages: opened by their receiver only, and believed only where the seal proves who wrote them."""

import json
from typing import Any

import pytest

from marketplace.protocol import checks, direct, nostr
from marketplace.protocol.events import Draft, Event
from tests.protocol.test_nostr import NOW, SECRET_A, SECRET_B, A, B

sdk: Any = nostr._sdk()
SECRET_C = "c" * 64
C = nostr.public_key(SECRET_C)


def encrypted(secret: str, to: str, text: str) -> str:
    return str(sdk.Keys.parse(secret).nip44_encrypt(sdk.PublicKey.parse(to), text))


def sealed(rumor: Any, by: str, kind: int = 13, **changes: Any) -> Event:
    """A wrap for B around a seal around `rumor`; `changes` spoil the seal after it is signed."""
    text = rumor if isinstance(rumor, str) else json.dumps(rumor)
    seal = nostr.sign(Draft(nostr.public_key(by), NOW, kind, (), encrypted(by, B, text)), by)
    spoilt = json.dumps({**seal.to_dict(), **changes})
    return nostr.sign(Draft(C, NOW, 1059, (("p", B),), encrypted(SECRET_C, B, spoilt)), SECRET_C)


def rumor(**changes: Any) -> dict[str, Any]:
    return {"pubkey": A, "created_at": NOW, "kind": 14, "tags": [["p", B]], "content": "hello", **changes}


def test_a_wrap_is_opened_by_its_receiver_only() -> None:
    wrap = nostr.gift_wrap(SECRET_A, B, "hello")
    assert wrap.kind == 1059 and wrap.pubkey not in {A, B}
    assert checks.check(wrap.to_dict()) == wrap
    message = direct.read(SECRET_B, wrap)
    assert (message.sender, message.text, message.receivers, message.legacy) == (A, "hello", (B,), False)
    for other in (SECRET_A, SECRET_C):
        with pytest.raises(ValueError, match="cannot be opened"):
            direct.read(other, wrap)


def test_two_wraps_of_one_message_hold_the_same_id_whatever_they_claim() -> None:
    first, second = sealed(rumor(), SECRET_A), sealed(rumor(id="f" * 64), SECRET_A)
    assert first.id != second.id
    assert direct.read(SECRET_B, first) == direct.read(SECRET_B, second)
    draft = Draft(A, NOW, 14, (("p", B),), "hello")
    assert direct.read(SECRET_B, first).id == draft.id


def test_a_seal_around_somebody_elses_message_is_refused() -> None:
    with pytest.raises(ValueError, match="not who sealed it"):
        direct.read(SECRET_B, sealed(rumor(), SECRET_C))


@pytest.mark.parametrize("changes", [{"pubkey": A}, {"sig": "0" * 128}, {"created_at": NOW + 1}, {"content": "x"}])
def test_a_seal_that_its_key_did_not_sign_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="seal is not signed"):
        direct.read(SECRET_B, sealed(rumor(), SECRET_C, **changes))


@pytest.mark.parametrize(
    "inside",
    [" ", "[]", "nonsense", "[" * 30_000, rumor(kind=1), rumor(tags="x"), rumor(content=None), rumor(content="\ud800"),
     rumor(created_at=-1), rumor(pubkey="A" * 64), {}],
)  # fmt: skip
def test_whatever_else_is_sealed_is_refused_in_words(inside: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        direct.read(SECRET_B, sealed(inside, SECRET_A))
    with pytest.raises(ValueError, match="cannot be opened"):
        direct.read(SECRET_B, sealed(rumor(), SECRET_A, kind=1))


def test_the_old_kind_is_read_by_both_sides_and_by_nobody_else() -> None:
    event = direct.write_legacy(SECRET_A, B, "hello 🙂", NOW)
    assert (event.kind, event.tags) == (4, (("p", B),))
    checks.check(event.to_dict())
    for secret in (SECRET_A, SECRET_B):
        message = direct.read(secret, event)
        assert (message.sender, message.text, message.legacy, message.id) == (A, "hello 🙂", True, event.id)
    with pytest.raises(ValueError, match="cannot be opened"):
        direct.read(SECRET_C, event)


@pytest.mark.parametrize("content", ["", '{"in": "clear"}', "abc?iv=def", "x" * 1_000])
def test_an_old_message_that_holds_none_is_refused(content: str) -> None:
    event = nostr.sign(Draft(A, NOW, 4, (("p", B),), content), SECRET_A)
    with pytest.raises(ValueError, match="cannot be opened"):
        direct.read(SECRET_B, event)
    with pytest.raises(ValueError, match="no direct message"):
        direct.read(SECRET_B, nostr.sign(Draft(A, NOW, 1, (("p", B),), content), SECRET_A))
