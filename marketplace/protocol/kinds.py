"""Kind numbers and what NIP-01 says of their ranges."""

PROFILE = 0
NOTE = 1
FOLLOWS = 3
ENCRYPTED_DM = 4
DELETION = 5
REACTION = 7
VANISH = 62
GIFT_WRAP = 1059
REPORT = 1984
LABEL = 1985
MUTES = 10_000
RELAYS = 10_002
DM_RELAYS = 10_050
ADOPTIONS = 10_123
CLIENT_AUTH = 22_242
HTTP_AUTH = 27_235
SKILL = 31_123
PRIVATE_SKILL = 31_124

SKILLS = frozenset({SKILL, PRIVATE_SKILL})
# What the site reads from its relays to build the catalogue.
CRAWLED = (PROFILE, FOLLOWS, DELETION, VANISH, MUTES, RELAYS, ADOPTIONS, SKILL, PRIVATE_SKILL)


def is_replaceable(kind: int) -> bool:
    """Whether the newest event per key replaces the others (NIP-01)."""
    return kind in {PROFILE, FOLLOWS} or 10_000 <= kind < 20_000


def is_ephemeral(kind: int) -> bool:
    return 20_000 <= kind < 30_000


def is_addressable(kind: int) -> bool:
    """Whether the newest event per key and first `d` replaces the others (NIP-01)."""
    return 30_000 <= kind < 40_000
