"""What the site knows: what relays said, the projections of it, and who may sign."""

from marketplace.models.accounts import ApiToken, SignInLink, User
from marketplace.models.archive import ArchivedEvent, HeldEvent, Sighting, Tombstone
from marketplace.models.authors import Author
from marketplace.models.identities import Identity
from marketplace.models.publications import Draft, Publication, RelayAnswer
from marketplace.models.site import CatalogueVersion, Heartbeat, Relay
from marketplace.models.skills import Adoption, Facet, Skill

__all__ = [
    "Adoption",
    "ApiToken",
    "ArchivedEvent",
    "Author",
    "CatalogueVersion",
    "Draft",
    "Facet",
    "Heartbeat",
    "HeldEvent",
    "Identity",
    "Publication",
    "Relay",
    "RelayAnswer",
    "Sighting",
    "SignInLink",
    "Skill",
    "Tombstone",
    "User",
]
