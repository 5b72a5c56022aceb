"""A model that answers by what it is asked: it calls for tools, then says that it is done."""

import re
import threading
from typing import Any

from tests import fakes


class ToolCaller(fakes.ModelServer):
    """Wants `turns` calls of one tool in a conversation; every answer differs, as a real model's would."""

    def __init__(self, tool: str, turns: int = 1, delay: float = 0.0) -> None:
        super().__init__()
        self.tool, self.turns, self.delay = tool, turns, delay
        self._here = threading.local()
        self._answers = 0

    def _take(self, body: dict[str, Any], key: str) -> None:
        self._here.messages = body["messages"]
        super()._take(body, key)

    def _next(self, model: str) -> fakes.Scripted:
        with self._lock:
            self._answers += 1
            number = self._answers
        done = sum(message["role"] == "tool" for message in self._here.messages)
        answer = fakes.text("It is done.") if done >= self.turns else self._wants(number)
        answer.delay = self.delay
        return answer

    def _wants(self, number: int) -> fakes.Scripted:
        named = re.search(r"occasion-\d+", str(self._here.messages))
        arguments = {"content": f"{named[0] if named else 'none'} by answer {number}"} if "post" in self.tool else {}
        return fakes.calls((f"call-{number}", self.tool, arguments))
