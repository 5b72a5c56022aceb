"""The history of changes: added to, never rewritten, without secrets, and a former value comes back with a click."""

import pytest
from django.utils import timezone

from agents.models import Change
from agents.models.changes import LONGEST, differences
from tests.agents import rows

pytestmark = pytest.mark.django_db
NOW = timezone.now()


def test_what_did_not_change_leaves_no_entry(helper):
    assert Change.record(helper, "grants", "", ["b", "a"], ["b", "a"], NOW) is None
    assert not Change.objects.exists()


def test_an_entry_says_who_and_where(helper):
    by_owner = Change.record(helper, "grants", "", [], ["memory_save"], NOW)
    run = rows.run(helper)
    by_agent = Change.record(helper, "llm", "", "", "cheap", NOW, run=run)
    assert (by_owner.actor, by_owner.run, by_owner.owner) == ("owner", None, helper.owner)
    assert (by_agent.actor, by_agent.run) == ("agent", run)


def test_an_entry_is_never_rewritten(helper):
    entry = Change.record(helper, "llm", "", "", "cheap", NOW)
    entry.after = "dear"
    with pytest.raises(TypeError):
        entry.save()
    entry.refresh_from_db()
    assert entry.after == "cheap"


def test_no_secret_and_no_endless_text_stands_in_it(helper):
    key = "nsec1" + "q" * 58
    entry = Change.record(
        helper, "settings", f"a {key}", {"soul": f"I am {key}"}, {"soul": "x" * 200_000, key: ["\0\ud800"]}, NOW
    )
    entry.refresh_from_db()
    kept = f"{entry.object} {entry.before} {entry.after}"
    assert key not in kept
    assert "I am nsec1…" in kept
    assert len(entry.after["soul"]) == LONGEST


def test_the_agents_end_leaves_its_history(helper):
    Change.record(helper, "llm", "", "", "cheap", NOW, run=rows.run(helper))
    helper.delete()
    entry = Change.objects.get()
    assert (entry.agent, entry.run, entry.undoable) == (None, None, False)


def test_undoing_is_one_more_change(helper):
    helper.grants = ["memory_save"]
    helper.save()
    entry = Change.record(helper, "grants", "", ["memory_save", "nostr_post"], ["memory_save"], NOW)
    undone = entry.undo(NOW)
    helper.refresh_from_db()
    assert helper.grants == ["memory_save", "nostr_post"]
    assert (undone.before, undone.after) == (["memory_save"], ["memory_save", "nostr_post"])
    assert Change.record(helper, "trigger", "x", True, False, NOW).undo(NOW) is None


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (["a", "b"], ["b", "c"], ["added c", "removed a"]),
        (["a", "b"], ["b", "a"], ["in another order"]),
        ("", "cheap", ["cheap"]),
        ("cheap", "", ["cheap → nothing"]),
        (True, False, ["yes → no"]),
        (None, {"event": "1"}, ["event: 1"]),
        ({"event": "1", "on": True}, {"event": "2", "on": True}, ["event: 1 → 2"]),
    ],
)
def test_it_says_what_is_different(before, after, words):
    assert differences(before, after) == words
