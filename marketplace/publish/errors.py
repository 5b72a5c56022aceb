"""Why nothing was published, apart because every step may say so."""


class PublishError(Exception):
    """Nothing was published; str() is a sentence for the owner."""


class NoRelayAnswered(PublishError):
    """The current list is unknown: a list written from a stale copy would delete other adoptions."""


class StaleList(PublishError):
    """The list is not what the caller saw, or its newest version is dated in the future."""


class Busy(PublishError):
    """Another change of the same list is on its way."""


class Unpublishable(PublishError):
    """The event would be refused everywhere: too large, or dated too far ahead."""
