"""What a log line may hold: no private key, and no traceback for what a stranger merely sent."""

import logging

from marketplace.protocol import nip19

# Their senders are told; twelve lines of our own code say nothing more.
_PLAIN = ("django.security", "django.request")


class Tidy(logging.Filter):
    """Changes the record and lets it through. An error of this site (5xx) keeps its traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith(_PLAIN) and getattr(record, "status_code", 500) < 500:
            record.exc_info = record.exc_text = None
        text = record.getMessage()
        if nip19.holds_nsec(text):
            record.msg, record.args = nip19.without_nsec(text), None
        return True
