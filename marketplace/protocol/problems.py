"""What is wrong with a skill, in words, beside the field it concerns."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    field: str  # name of the form field, "" for the whole
    message: str
    level: str = "error"  # error: not usable as it is; warning: usable


class NotWritable(ValueError):
    """A spec that must not be published; `problems` says why."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = problems
