"""What a log line may hold: no private key, no secret address, and no traceback for what a stranger merely sent."""

import logging
import re

from marketplace.protocol import nip19

# The address of a webhook is its credential.
_HOOK = re.compile(r"(/hooks/)[^\s/?\"']+")
# Their senders are told; twelve lines of our own code say nothing more.
_PLAIN = ("django.security", "django.request")


class Tidy(logging.Filter):
    """Changes the record and lets it through. An error of this site (5xx) keeps its traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith(_PLAIN) and getattr(record, "status_code", 500) < 500:
            record.exc_info = record.exc_text = None
        text = record.getMessage()
        tidied = _HOOK.sub(r"\1…", nip19.without_nsec(text))
        if tidied != text:
            record.msg, record.args = tidied, None
        return True
