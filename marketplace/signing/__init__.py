"""Custody of keys: a held key is sealed at rest, opened only here, and leaves only as a signature.

Nothing in this package returns a secret key or names one in an exception; `sensitive_variables` keeps them out of
error reports too.
"""

from marketplace.signing.identities import (
    Differs,
    NotHeld,
    accept,
    create_identity,
    decrypt,
    encrypt,
    gift_wrap,
    read_message,
    register_browser_key,
    sign,
    unwrap,
    write_legacy,
)
from marketplace.signing.vault import VaultError, rotate, seal, unseal

__all__ = [
    "Differs",
    "NotHeld",
    "VaultError",
    "accept",
    "create_identity",
    "decrypt",
    "encrypt",
    "gift_wrap",
    "read_message",
    "register_browser_key",
    "rotate",
    "seal",
    "sign",
    "unseal",
    "unwrap",
    "write_legacy",
]
