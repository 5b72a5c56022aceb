"""What the marketplace announces, so that agents can follow without an import back."""

from django.dispatch import Signal

# Sent after commit with outcomes=list[marketplace.ingest.Outcome] (those stored only).
stored = Signal()
