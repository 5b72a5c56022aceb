"""Stops outgoing text that holds a secret this site knows, in any of the forms a model could be talked into."""

import base64
import os
import re
from collections.abc import Iterator
from urllib.parse import quote, unquote

from django.conf import settings
from django.views.decorators.debug import sensitive_variables

from agents.models import Agent, ProviderKey
from agents.tools.calls import SecretFound, ToolContext
from marketplace import signing
from marketplace.models import Identity
from marketplace.protocol import nostr

STOPPED = "The text holds a secret key. It was stopped and nothing was sent."
_ENDINGS = ("_API_KEY", "_SECRET_KEY", "_ACCESS_KEY", "_TOKEN")  # of variables in which providers' keys stand
SHORTEST = 12  # characters; shorter ones would stop ordinary words
_HEX = re.compile(r"[0-9a-f]{64,}")
_NSEC = re.compile(r"nsec1[02-9ac-hj-np-z]{58}")
# What may be put between the characters of a key without hiding it from a reader.
_BETWEEN = re.compile(r"[\s\u00ad\u200b-\u200f\u2060\ufeff_.,:;|*`'\"/\\-]+")


@sensitive_variables()
def stop(ctx: ToolContext, *texts: str) -> None:
    """Raises SecretFound when one of the texts holds a key held here, a provider's key, or the site's own."""
    for text in texts:
        plain = unquote(text)
        if _holds_key(plain) or any(form in text or form in plain for form in _forms(ctx.agent)):
            raise SecretFound(STOPPED)


@sensitive_variables()
def _holds_key(text: str) -> bool:
    """Whether a private key stands in it: any nsec, or hex that is the key of an identity kept here."""
    joined = _BETWEEN.sub("", text.lower())
    if _NSEC.search(joined):
        return True
    publics: set[str] = set()
    for run in _HEX.findall(joined)[:200]:
        # A long run of hex may hold a key anywhere in it; ids and keys alone are exactly 64 digits.
        for start in range(min(len(run) - 63, 200)):
            try:
                publics.add(nostr.public_key(run[start : start + 64]))
            except Exception:  # noqa: S112 not every number is a key; the library has no narrower error
                continue
    return bool(publics) and Identity.objects.filter(pubkey__in=publics, custody=Identity.Custody.HELD).exists()


@sensitive_variables()
def _forms(agent: Agent) -> Iterator[str]:
    """Each known secret as it is, quoted for an address, and in base64 at its three alignments."""
    for secret in _secrets(agent):
        yield from {secret, quote(secret, safe="")}
        yield from _base64(secret.encode())
        if len(secret) == 64:
            yield from _base64(bytes.fromhex(secret))


@sensitive_variables()
def _secrets(agent: Agent) -> Iterator[str]:
    sealed = list(ProviderKey.objects.filter(agent__owner=agent.owner_id).values_list("sealed", flat=True))
    sealed.append(agent.identity.sealed)
    opened = [signing.unseal(one) for one in sealed if one]
    opened += [settings.SECRET_KEY, settings.LLM_API_KEY]
    opened += [value for name, value in os.environ.items() if name.endswith(_ENDINGS)]
    vault = settings.VAULT_KEY_FILE
    if vault.exists():
        opened += vault.read_text().split()
    yield from (secret for secret in opened if len(secret) >= SHORTEST)


@sensitive_variables()
def _base64(secret: bytes) -> Iterator[str]:
    for shift in range(3):
        # The first and last digits also depend on what stands around the secret: only the middle is certain.
        digits = base64.b64encode(b"\0" * shift + secret).decode().rstrip("=")
        middle = digits[(0, 2, 3)[shift] : len(digits) - 1]
        yield middle
        yield middle.replace("+", "-").replace("/", "_")
