"""The catalogue of skills: what relays hold, who adopted what, and who may sign."""

import os
import sys

# What libraries load where it happens to be installed, and no process of ours uses: None counts as not installed.
_UNUSED = {"httpx._main"}  # its command line, with rich
if os.environ.get("JOURNEYMAN_PROCESS") in {"web", "listener", "tick"}:
    _UNUSED |= {"greenlet", "h2", "jinja2"}
for _name in _UNUSED:
    sys.modules.setdefault(_name, None)  # type: ignore[arg-type]
