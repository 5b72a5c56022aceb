"""`manage.py ingest` and `manage.py rebuild`, as a person or a script calls them."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from marketplace.management.commands import ingest as command
from marketplace.models import ArchivedEvent, Skill
from tests.keys import T0, Keys

pytestmark = pytest.mark.django_db


def run(path: Path) -> tuple[list[dict[str, str]], str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("ingest", str(path), stdout=out, stderr=err)
    return [json.loads(line) for line in out.getvalue().splitlines()], err.getvalue()


def test_each_line_has_its_outcome_and_a_broken_one_is_not_the_end(tmp_path: Path, keys: Keys) -> None:
    event, older = keys.A.skill("s", at=T0 + 1), keys.A.skill("s", "old")
    lines = [
        event.to_json(),
        older.to_json(),
        event.to_json(),
        "not json",
        "",
        json.dumps({**event.to_dict(), "content": "{}"}),
        keys.A.sign(1, "hello").to_json(),
        keys.A.skill("later", at=2**32 - 1).to_json(),
        keys.A.skill("x", tags=[["expiration", "1"]]).to_json(),
        keys.A.deletes(keys.A.address("s"), at=T0 + 1).to_json(),
        older.to_json(),
        "x" * (command.LONGEST + 10),
        keys.B.skill("last").to_json(),
    ]
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join(lines))
    found, words = run(path)
    assert [row["outcome"] for row in found] == [
        *("stored", "older", "duplicate", "refused", "refused", "ignored", "held", "expired"),
        *("stored", "deleted", "refused", "stored"),
    ]
    assert all(set(row) == {"id", "outcome", "reason"} for row in found)
    assert found[0]["id"] == event.id
    assert found[4] == {"id": event.id, "outcome": "refused", "reason": "bad-id"}
    assert "12 events: 3 stored" in words
    assert list(Skill.objects.public().values_list("d", flat=True)) == ["last"]


def test_a_file_that_is_not_there_is_said_in_words() -> None:
    with pytest.raises(CommandError, match="No such file"):
        call_command("ingest", "/nowhere/events.jsonl")


def test_a_file_of_nothing_but_refusals_ends_with_an_error(tmp_path: Path, keys: Keys) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(f"nonsense\n{keys.A.skill('s').to_json()[:-2]}\n")
    out = io.StringIO()
    with pytest.raises(CommandError, match="every line was refused"):
        call_command("ingest", str(path), stdout=out, stderr=io.StringIO())
    assert [json.loads(line)["reason"] for line in out.getvalue().splitlines()] == ["json", "json"]
    path.write_text(f"nonsense\n{keys.A.sign(1, 'a note').to_json()}\n")
    assert [row["outcome"] for row in run(path)[0]] == ["refused", "ignored"]


def test_long_lines_are_handed_over_in_smaller_batches(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "TOGETHER", 100)
    lines = [b"x" * 60, b" ", b"y" * 60, b"z"]
    assert list(command._batches(io.BytesIO(b"\n".join(lines)))) == [[b"x" * 60, b"y" * 60], [b"z"]]


def test_an_empty_file_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "none").write_text("")
    assert run(tmp_path / "none") == ([], "no events\n")


def test_standard_input_is_read_for_a_dash(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    class Input:
        buffer = io.BytesIO(keys.A.skill("s").to_json().encode())

    monkeypatch.setattr("sys.stdin", Input())
    out = io.StringIO()
    call_command("ingest", "-", stdout=out, stderr=io.StringIO())
    assert json.loads(out.getvalue())["outcome"] == "stored"


def test_rebuild_says_what_it_did_and_repairs(tmp_path: Path, keys: Keys) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(f"{keys.A.skill('s').to_json()}\n{keys.B.adopts(keys.A.address('s')).to_json()}\n")
    run(path)
    Skill.objects.all().delete()
    out = io.StringIO()
    call_command("rebuild", stdout=out)
    assert "2 addresses rebuilt" in out.getvalue()
    assert Skill.objects.get().adopters == 1
    assert ArchivedEvent.objects.count() == 2
