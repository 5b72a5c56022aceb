"""What a model would be sent, before any call: for forms, the editor, run pages and the API alike."""

from agents.preview.estimates import Estimate, estimates
from agents.preview.requests import of_run, own_names, preview
from agents.preview.samples import edited, next_turn, sample_event

__all__ = ["Estimate", "edited", "estimates", "next_turn", "of_run", "own_names", "preview", "sample_event"]
