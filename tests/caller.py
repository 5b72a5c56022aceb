"""A model that answers by what it is asked: it calls for tools, then says that it is done."""

import re
from typing import Any

from tests import fakes


class ToolCaller(fakes.ModelServer):
    """Wants `turns` calls of one tool in a conversation; every answer differs, as a real model's would."""

    def __init__(self, tool: str, turns: int = 1, delay: float = 0.0) -> None:
        super().__init__()
        self.tool, self.turns, self.delay = tool, turns, delay

    def next(self, body: dict[str, Any], key: str) -> fakes.Scripted:
        answer = super().next(body, key)
        done = sum(message["role"] == "tool" for message in body["messages"])
        if done < self.turns:
            answer = self._wants(str(body["messages"]), len(self.asked))
        answer.delay = self.delay
        return answer

    def _wants(self, messages: str, number: int) -> fakes.Scripted:
        named = re.search(r"occasion-\d+", messages)
        arguments = {"content": f"{named[0] if named else 'none'} by answer {number}"} if "post" in self.tool else {}
        return fakes.calls((f"call-{number}", self.tool, arguments))
