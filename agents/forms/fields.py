"""Kinds of fields that several forms have."""

from collections.abc import Iterable, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

from django import forms

from marketplace import addresses
from marketplace.protocol import nip19
from marketplace.protocol.hidden import hidden

LONGEST_TEXT = 100_000
NOT_PUBLIC = (
    "This is not a public address, and not one that whoever runs this site allows (JOURNEYMAN_ALLOW_ADDRESSES)."
)
SECRET = "This held a secret key (nsec). It was not kept; treat that key as leaked."


def choose(field: forms.Field, choices: Sequence[tuple[str, str]]) -> None:
    """Choices that are known only when the form is made."""
    cast(forms.ChoiceField, field).choices = choices


def address(text: str, schemes: Iterable[str]) -> str:
    """An address without credentials in it."""
    try:
        parts = urlsplit(text)
        known = f"{parts.scheme}://" in schemes and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        known = False
    if not known or any(character.isspace() for character in text):
        raise forms.ValidationError(f"“{text[:80]}” is not an address that starts with {' or '.join(schemes)}.")
    if parts.username or parts.password:
        raise forms.ValidationError("Leave user name and password out of the address.")
    return text.rstrip("/")


def seen(name: str) -> None:
    """Refuses a name with characters that nobody sees, or that turn what stands around them: two could look alike."""
    found = dict.fromkeys(place for _, place in hidden(name))
    if found:
        told = ", ".join(list(found)[:5])
        raise forms.ValidationError(f"A name has only characters that can be seen; this one holds {told}.")


def reachable(text: str) -> None:
    """Refuses an address that could never be connected to from here; names are looked up later, at each call."""
    if not addresses.may_be_public(urlsplit(text).hostname or ""):
        raise forms.ValidationError(NOT_PUBLIC)


class SecretsRefused(forms.BaseForm):
    """A form whose texts hold no secret key: one that was pasted is neither kept nor shown again."""

    OWN_SECRET = ""  # the field that a secret key is for

    def full_clean(self) -> None:
        pasted = []
        if self.is_bound:
            names = {name: self.add_prefix(name) for name in self.fields if name != self.OWN_SECRET}
            pasted = [name for name, sent in names.items() if nip19.holds_nsec(str(self.data.get(sent, "")))]
            given = cast(Any, self.data).copy()
            for name in pasted:
                given[names[name]] = ""
            self.data = given
        super().full_clean()
        for name in pasted:
            self.errors.pop(name, None)  # what the emptied text is accused of
            self.add_error(name, SECRET)


class Lines(forms.CharField):
    """Several values, one a line."""

    widget = forms.Textarea

    def to_python(self, value: Any) -> Any:
        if isinstance(value, list):
            return value
        return [line.strip() for line in (super().to_python(value) or "").splitlines() if line.strip()]

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def run_validators(self, value: Any) -> None:
        super().run_validators("\n".join(value))


class Key(forms.CharField):
    """A public key in any of its forms; hex once cleaned."""

    def to_python(self, value: Any) -> str:
        text = (super().to_python(value) or "").strip()
        return public_key(text) if text else ""

    def prepare_value(self, value: Any) -> Any:
        return nip19.encode_npub(value) if isinstance(value, str) and len(value) == 64 else value


def public_key(text: str) -> str:
    try:
        return nip19.read_key(text)
    except ValueError:
        raise forms.ValidationError(f"“{text[:80]}” is not a key: it starts with npub1 or has 64 hex digits.") from None
