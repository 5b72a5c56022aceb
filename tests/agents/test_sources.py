"""Several sources of skills as one list: order, names, what is hidden, and what is asked again."""

import pytest

from agents.engine.disclosure import Entry
from agents.sources import Listing, Merged, Report, SkillNotFoundError, SkillsError


class Shelf:
    """A source of what a test puts on it; counts its scans."""

    def __init__(self, name, *names, reports=(), broken=False):
        self.name, self.names, self.reports, self.broken = name, list(names), reports, broken
        self.scans = 0

    def list_skills(self):
        self.scans += 1
        if self.broken:
            raise SkillsError("the disk is gone", path="/skills")
        return Listing(tuple(Entry(name, f"of {self.name}") for name in self.names), tuple(self.reports))

    def load_skill(self, name):
        if name not in self.names:
            raise SkillNotFoundError(name, self.names)
        return Entry(name, f"of {self.name}", f"Body of {name} in {self.name}.")

    def read_file(self, name, path):
        return f"{self.name}/{name}/{path}"


def test_the_first_name_wins_and_the_rest_are_reported():
    first, second = Shelf("one", "fix", "post"), Shelf("two", "post", "extra")
    found = Merged([first, second]).list_skills()
    assert [(entry.name, entry.description) for entry in found.entries] == [
        ("fix", "of one"),
        ("post", "of one"),
        ("extra", "of two"),
    ]
    assert found.reports == (Report("post", "two", 0, "the skill of this name in one comes first."),)
    assert found.complete
    assert Merged([first, second]).load_skill("post").body == "Body of post in one."
    assert Merged([first, second]).read_file("extra", "a.md") == "two/extra/a.md"


def test_what_is_new_is_seen_by_every_listing_and_by_a_miss():
    shelf = Shelf("one", "fix")
    merged = Merged([shelf])
    merged.list_skills()
    shelf.names.append("late")
    assert merged.load_skill("late").name == "late"
    assert shelf.scans == 2
    assert merged.load_skill("late").name == "late"
    assert shelf.scans == 2
    shelf.names.remove("late")
    with pytest.raises(SkillNotFoundError) as caught:
        merged.load_skill("late")
    assert shelf.scans == 3  # once more, and no more than that
    assert caught.value.visible == ("fix",)
    assert str(caught.value) == 'skill "late" is unknown or no longer available'
    assert "fix" in caught.value.hint


def test_a_skill_that_moves_to_another_source_is_found_there():
    first, second = Shelf("one", "fix"), Shelf("two")
    merged = Merged([first, second])
    merged.list_skills()
    first.names.clear()
    second.names.append("fix")
    assert merged.load_skill("fix").description == "of two"


def test_a_hidden_name_is_neither_listed_nor_loaded_in_any_source():
    merged = Merged([Shelf("one", "fix"), Shelf("two", "fix", "post")], hidden={"fix"})
    assert [entry.name for entry in merged.list_skills().entries] == ["post"]
    for ask in (merged.load_skill, lambda name: merged.read_file(name, "a.md")):
        with pytest.raises(SkillNotFoundError):
            ask("fix")


def test_a_source_that_does_not_answer_is_reported_and_leaves_the_list_incomplete():
    found = Merged([Shelf("one", "fix"), Shelf("two", broken=True)]).list_skills()
    assert [entry.name for entry in found.entries] == ["fix"]
    assert not found.complete
    assert found.reports == (Report("", "/skills", 0, "the disk is gone"),)
