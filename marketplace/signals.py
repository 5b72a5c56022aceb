"""What the marketplace announces, so that agents can follow without an import back."""

from django.dispatch import Signal

# Sent after commit with outcomes=list[marketplace.ingest.Outcome] (those stored only).
stored = Signal()

# Sent inside the transaction with addresses=set[str]: skills that appeared, or whose adoptions changed.
touched = Signal()
