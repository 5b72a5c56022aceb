"""Adopted skills as a source: which there are, in which version, and what a model would read of them."""

import pytest

from agents.models import AdoptedSkill
from agents.sources import SkillNotFoundError, SkillsError, sources_for
from agents.sources.adopted import AdoptedSource, instructions
from marketplace import signing
from marketplace.protocol.skills import SkillSpec
from tests.agents import rows

pytestmark = pytest.mark.django_db


def demand(agent, found, position=0, **fields):
    return AdoptedSkill.objects.create(
        agent=agent, address=str(found.address), position=position, pinned_event=found.id, on_demand=True, **fields
    )


def test_only_what_is_on_demand_is_listed_each_in_its_pinned_version(helper):
    first = rows.skill({"description": "First words", "template": "Old."}, d="fix")
    rows.skill({"description": "Newer words", "template": "New."}, d="fix")
    demand(helper, first)
    rows.adopt(helper, rows.skill({"template": "Always."}, d="always"), 1)
    ((entry),) = AdoptedSource(helper).list_skills().entries
    assert (entry.name, entry.description, entry.body, entry.version) == ("fix", "First words", "Old.", first.id)
    assert (entry.by_model, entry.by_user, entry.foreign) == (True, True, False)


def test_a_skill_of_another_agents_list_is_not_seen(helper):
    demand(rows.agent(rows.owner("bob"), "Other"), rows.skill({"template": "Theirs."}, d="theirs"))
    assert AdoptedSource(helper).list_skills().entries == ()
    with pytest.raises(SkillNotFoundError):
        AdoptedSource(helper).load_skill("theirs")


def test_a_followed_skill_is_foreign_unless_its_author_is_its_owner(helper):
    demand(helper, rows.skill({"template": "x"}, d="theirs"), follow=True)
    own = signing.create_identity(helper.owner, "Mine", None)
    mine = rows.skill({"template": "x"}, d="mine")
    demand(helper, mine, 1, follow=True)
    AdoptedSkill.objects.filter(pinned_event=mine.id).update(address=f"31123:{own.pubkey}:mine")
    assert [(entry.name, entry.foreign) for entry in AdoptedSource(helper).list_skills().entries] == [
        ("theirs", True),
        ("mine", False),
    ]


@pytest.mark.parametrize(
    ("content", "tags", "by_model", "by_user"),
    [
        ({}, [["disable-model-invocation", "true"]], False, True),
        ({"disable-model-invocation": True}, [], False, True),
        ({"disable-model-invocation": "True"}, [], False, True),
        ({"user-invocable": False}, [["user-invocable"]], True, False),
        ({"disable-model-invocation": False, "user-invocable": 1}, [], True, True),
    ],
)
def test_who_may_invoke_it_is_its_authors_word_in_content_or_tags(helper, content, tags, by_model, by_user):
    demand(helper, rows.skill({"template": "x", **content}, *tags))
    ((entry),) = AdoptedSource(helper).list_skills().entries
    assert (entry.by_model, entry.by_user) == (by_model, by_user)


def test_its_sections_are_read_in_order_and_its_variables_named():
    template = "Start.\nuser:\nInto {{language}}: {{message}}\nassistant:\n{{ soul }}"
    assert instructions(SkillSpec("x", template=template)) == (
        "Start.\n\nuser:\nInto [language]: [the message that started the run]"
        "\n\nassistant:\n[the agent's own character and rules]"
    )


def test_it_has_no_files_and_says_so(helper):
    demand(helper, rows.skill({"template": "x"}, d="fix"))
    with pytest.raises(SkillsError) as caught:
        AdoptedSource(helper).read_file("fix", "../x")
    assert (caught.value.skill_name, caught.value.path) == ("fix", "../x")
    assert caught.value.hint


def test_adopted_skills_come_before_the_servers_folders(helper, settings, tmp_path):
    for name in ("fix", "more"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_bytes(
            b"\xef\xbb\xbf--- \r\nname: " + name.encode() + b"\r\ndescription: Use when: asked\r\n---\r\nOf the folder."
        )
    settings.SKILLS_DIRS = [str(tmp_path)]
    demand(helper, rows.skill({"description": "Adopted", "template": "Of the list."}, d="fix"))
    found = sources_for(helper).list_skills()
    assert [(entry.name, entry.description) for entry in found.entries] == [
        ("fix", "Adopted"),
        ("more", "Use when: asked"),
    ]
    assert [report.name for report in found.reports] == ["fix"], found.reports
    assert sources_for(helper).load_skill("fix").body == "Of the list."
    assert sources_for(helper).load_skill("more").body == "Of the folder."
