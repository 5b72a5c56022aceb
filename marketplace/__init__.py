"""The catalogue of skills: what relays hold, who adopted what, and who may sign."""

import sys

# httpx imports its command line where click and rich are installed: 3 MB in every process, used by none.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
