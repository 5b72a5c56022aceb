"""Any skill survives writing and reading; the reader survives any event."""

import json
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from marketplace.protocol.events import Address, Draft
from marketplace.protocol.filters import Filter
from marketplace.protocol.parameters import RunParams
from marketplace.protocol.skills import NotWritable, SkillSpec, kind_of, normalised, read_skill, write_skill
from marketplace.protocol.triggers import TriggerSpec
from marketplace.protocol.triggers.chain import Chain
from marketplace.protocol.triggers.cron import Cron
from marketplace.protocol.triggers.subscription import Subscription
from marketplace.protocol.triggers.webhook import Param, Webhook
from tests.events import NOW, A


def draft(content: object, tags: object = (("d", "x"),), kind: int = 31123) -> Draft:
    text = content if isinstance(content, str) else json.dumps(content)
    return Draft(A, NOW, kind, tuple(tuple(tag) for tag in tags), text)  # type: ignore[attr-defined]


def written(spec: SkillSpec) -> Draft:
    content, tags = write_skill(spec)
    return Draft(A, NOW, kind_of(spec), tags, content)


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20)
NAMES = st.text("abcdefgh_", min_size=1, max_size=6)
PARAMS = st.builds(
    RunParams,
    st.none() | st.sampled_from(["cheap", "a/b, default"]),
    st.none() | st.integers(1, 10_000_000),
    st.none() | st.floats(0, 2),
    st.none() | st.integers(-(2**63) + 1, 2**63 - 1),
    st.none() | st.booleans() | st.lists(NAMES, unique=True, max_size=3).map(tuple),
)
DATA = {
    "nostr-subscription": st.builds(
        Subscription,
        st.lists(
            st.builds(Filter, kinds=st.frozensets(st.integers(0, 9), min_size=1), limit=st.none() | st.just(3)),
            min_size=1,
            max_size=3,
        ).map(tuple),
    ),
    "cron": st.sampled_from([Cron("*/5 * * * *"), Cron("0 9 * * 1-5", "Europe/Berlin")]),
    "webhook": st.lists(st.builds(Param, NAMES, st.sampled_from(["string", "number"]), st.booleans()), max_size=3).map(
        lambda params: Webhook(tuple({param.name: param for param in params}.values()))
    ),
    "chain": st.builds(
        Chain, st.builds(Address, st.just(31123), st.just(A), WORDS), st.sampled_from(["failed", "always"])
    ),
}
TRIGGERS = st.sampled_from([*DATA]).flatmap(
    lambda kind: st.builds(TriggerSpec, st.just(kind), DATA[kind], st.just("llm"), st.booleans(), PARAMS)
)
SPECS = st.builds(
    SkillSpec,
    d=st.text("abc-é:", min_size=1, max_size=10),
    public=st.booleans(),
    description=WORDS,
    template=st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=30).map(
        lambda text: f"user:\n{text}{{{{message}}}}"
    ),
    context_mode=st.sampled_from([None, "inject", "override", "full"]),
    params=PARAMS,
    soul=st.none() | st.booleans(),
    base=st.none() | WORDS,
    topics=st.lists(WORDS, max_size=3).map(tuple),
    license=WORDS,
    version=WORDS,
    trigger=st.none() | TRIGGERS,
    extra_content=st.dictionaries(
        NAMES.map("x_{}".format), st.sampled_from(["1.0", '{"a": [1,2]}', "null"]), max_size=2
    ).map(lambda row: tuple(row.items())),
    extra_tags=st.lists(st.tuples(NAMES.map("x_{}".format), WORDS), max_size=2).map(tuple),
    generation=st.sampled_from(["A", "B"]),
)


@settings(max_examples=60)
@given(SPECS)
def test_writing_then_reading_gives_the_skill_back(spec: SkillSpec) -> None:
    if spec.generation == "B" and spec.params and not spec.trigger:
        spec = replace(spec, generation="A")
    event = written(spec)
    back = read_skill(event)
    assert back == normalised(spec)
    assert [problem for problem in back.problems if problem.level == "error"] == []
    assert written(back) == event


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KNOWN = ["description", "template", "context_mode", "llm", "tools", "soul", "max_tokens", "temperature", "seed", "base"]
TAGS = st.lists(
    st.lists(
        st.sampled_from(
            [
                "d",
                "trigger",
                "filter",
                "action",
                "enabled",
                "tools",
                "schedule",
                "tz",
                "param",
                "source",
                "on",
                "template",
            ]
        )
        | st.sampled_from(["nostr-subscription", "cron", "webhook", "chain", '{"kinds":[1]}', "* * * * *"])
        | st.text(max_size=5),
        min_size=1,
        max_size=4,
    ),
    max_size=6,
)


@settings(max_examples=40)
@given(st.text(max_size=20) | st.dictionaries(st.sampled_from(KNOWN), JSON), TAGS, st.sampled_from([31123, 31124]))
def test_the_reader_never_raises_whatever_it_reads(content: object, tags: list[list[str]], kind: int) -> None:
    skill = read_skill(draft(content, tags, kind))
    assert skill.rule in {"inject", "full", "override", "compose"}
    assert skill.runnable in {True, False}
    assert skill.tools in {True, False} or isinstance(skill.tools, tuple)
    try:
        back = read_skill(written(skill))
    except NotWritable:
        return
    assert back == normalised(skill)
