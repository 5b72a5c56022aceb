"""Keys: sealed outside the database, signing without being seen, rotated without a gap."""

import logging
import stat
import traceback
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.views.debug import ExceptionReporter

from marketplace import signing
from marketplace.models import Identity, User
from marketplace.protocol import checks, kinds, nostr
from marketplace.protocol.events import Draft
from marketplace.signing import vault

CANARY = "5d" * 32


@pytest.fixture
def vault_file(settings, tmp_path) -> Path:
    settings.VAULT_KEY_FILE = tmp_path / "keys" / "vault.key"
    return settings.VAULT_KEY_FILE


@pytest.fixture
def alice(db) -> User:
    return User.objects.create_user("alice")


def note(identity: Identity, content: str = "hello") -> Draft:
    return Draft(identity.pubkey, 1_760_000_000, kinds.NOTE, (("t", "x"),), content)


def test_the_vault_key_is_made_at_first_use_for_its_owner_only(vault_file):
    sealed = signing.seal("a secret")
    assert stat.S_IMODE(vault_file.stat().st_mode) == 0o600
    assert "a secret" not in sealed
    assert signing.unseal(sealed) == "a secret"


def test_a_lost_vault_key_is_named_and_never_replaced(vault_file):
    sealed = signing.seal("a secret")
    vault_file.unlink()
    with pytest.raises(signing.VaultError, match=r"vault\.key is missing: restore it from your backup"):
        signing.unseal(sealed)
    assert not vault_file.exists()


def test_another_vault_key_opens_nothing_and_says_so(vault_file):
    sealed = signing.seal("a secret")
    vault_file.unlink()
    signing.seal("made anew")
    with pytest.raises(signing.VaultError, match="does not open this"):
        signing.unseal(sealed)


def test_a_broken_key_file_is_named_without_its_content(vault_file):
    vault_file.parent.mkdir()
    vault_file.write_text("not-a-key-but-secret")
    with pytest.raises(signing.VaultError) as caught:
        signing.seal("x")
    assert "not-a-key-but-secret" not in str(caught.value)


def test_a_generated_key_signs_what_relays_accept(vault_file, alice):
    identity = signing.create_identity(alice, "mine")
    event = signing.sign(identity, note(identity, "é 🍕"))
    checks.verify(event)
    assert identity.custody == Identity.Custody.HELD


def test_a_pasted_nsec_gives_the_same_key_whatever_blanks_came_along(vault_file, alice):
    identity = signing.create_identity(alice, "pasted", f"  {CANARY}\n")
    assert identity.pubkey == nostr.public_key(CANARY)
    assert CANARY not in identity.sealed


@pytest.mark.parametrize("typed", ["nsec1qqqq", CANARY[:-1], "npub1" + "q" * 58])
def test_a_wrong_nsec_is_refused_without_being_repeated(vault_file, alice, typed):
    with pytest.raises(ValueError, match="not a secret key") as caught:
        signing.create_identity(alice, "x", typed)
    assert typed not in "".join(traceback.format_exception(caught.value))


def test_one_key_is_kept_once_per_owner(vault_file, alice):
    signing.create_identity(alice, "first", CANARY)
    with pytest.raises(ValueError, match="“first”"):
        signing.create_identity(alice, "again", CANARY)


def test_a_key_never_shows_in_repr_log_error_page_or_database(vault_file, alice, caplog, rf):
    identity = signing.create_identity(alice, "quiet", CANARY)
    with caplog.at_level(logging.DEBUG):
        try:
            signing.sign(identity, note(identity, "\ud800"))
        except UnicodeEncodeError as error:
            page = ExceptionReporter(rf.get("/"), type(error), error, error.__traceback__).get_traceback_html()
        else:
            pytest.fail("half a surrogate pair has no UTF-8")
    row = Identity.objects.values().get(pk=identity.pk)
    assert CANARY not in repr(identity) + str(identity) + caplog.text + str(row)
    assert identity.sealed
    assert "********************" in page  # the frame is there, its values are not
    assert CANARY not in page


def test_a_draft_of_another_key_is_not_signed(vault_file, alice):
    mine, other = signing.create_identity(alice, "a"), signing.create_identity(alice, "b")
    with pytest.raises(signing.Differs):
        signing.sign(mine, note(other))


def test_a_browser_key_signs_elsewhere(vault_file, alice):
    identity = signing.register_browser_key(alice, "extension", nostr.public_key(CANARY))
    with pytest.raises(signing.NotHeld, match="in your browser"):
        signing.sign(identity, note(identity))


def test_what_a_browser_signed_is_taken_when_it_is_what_was_handed_out(vault_file, alice):
    draft = note(signing.register_browser_key(alice, "extension", nostr.public_key(CANARY)))
    later = Draft(draft.pubkey, draft.created_at + 7, draft.kind, draft.tags, draft.content)
    assert signing.accept(draft, nostr.sign(later, CANARY).to_dict()).created_at == draft.created_at + 7


@pytest.mark.parametrize(
    ("changed", "word"),
    [({"content": "other"}, "content"), ({"tags": (("t", "x"), ("t", "y"))}, "tags"), ({"kind": 7}, "kind")],
)
def test_what_a_browser_changed_is_refused(vault_file, alice, changed, word):
    draft = note(signing.register_browser_key(alice, "extension", nostr.public_key(CANARY)))
    fields = {"pubkey": draft.pubkey, "created_at": 1, "kind": 1, "tags": draft.tags, "content": draft.content}
    signed = nostr.sign(Draft(**{**fields, **changed}), CANARY)
    with pytest.raises(signing.Differs, match=word):
        signing.accept(draft, signed.to_dict())


def test_another_browser_key_is_refused(vault_file, alice):
    draft = note(signing.register_browser_key(alice, "extension", nostr.public_key(CANARY)))
    stranger = "77" * 32
    signed = nostr.sign(Draft(nostr.public_key(stranger), 1, draft.kind, draft.tags, draft.content), stranger)
    with pytest.raises(signing.Differs, match="key"):
        signing.accept(draft, signed.to_dict())


def test_a_forged_signature_is_refused(vault_file, alice):
    draft = note(signing.register_browser_key(alice, "extension", nostr.public_key(CANARY)))
    with pytest.raises(checks.Refused):
        signing.accept(draft, {**nostr.sign(draft, CANARY).to_dict(), "sig": "0" * 128})


def test_what_a_key_encrypts_for_itself_it_reads_again(vault_file, alice):
    identity = signing.create_identity(alice, "mine")
    payload = signing.encrypt(identity, '{"template":"секрет"}')
    assert "секрет" not in payload
    assert signing.decrypt(identity, payload) == '{"template":"секрет"}'


def test_a_message_reaches_its_receiver_and_nobody_else(vault_file, alice):
    mine, theirs, stranger = (signing.create_identity(alice, name) for name in "abc")
    wrap = signing.gift_wrap(mine, theirs.pubkey, "hi")
    assert signing.unwrap(theirs, wrap) == (mine.pubkey, "hi")
    with pytest.raises(ValueError, match="cannot be opened"):
        signing.unwrap(stranger, wrap)


def test_rotation_reseals_everything_and_drops_old_keys_only_when_asked(vault_file, alice):
    identity = signing.create_identity(alice, "mine", CANARY)
    before = identity.sealed
    out = StringIO()
    call_command("rotate_vault", stdout=out)
    identity.refresh_from_db()
    assert "1 keys sealed again" in out.getvalue()
    assert CANARY not in out.getvalue()
    assert vault.sealed_by_newest(identity.sealed)
    assert signing.unseal(before) == CANARY  # an older backup still opens
    call_command("rotate_vault", "--drop-old", stdout=StringIO())
    assert signing.unseal(identity.sealed) == CANARY
    assert stat.S_IMODE(vault_file.stat().st_mode) == 0o600
    with pytest.raises(signing.VaultError):
        signing.unseal(before)


def test_rotation_drops_nothing_while_something_needs_an_old_key(vault_file, alice):
    identity = signing.create_identity(alice, "mine", CANARY)
    Identity.objects.create(user=alice, pubkey="ab" * 32, sealed="sealed by a lost key")
    with pytest.raises(CommandError, match="none of the vault's keys"):
        call_command("rotate_vault", "--drop-old", stdout=StringIO())
    identity.refresh_from_db()
    assert signing.unseal(identity.sealed) == CANARY
