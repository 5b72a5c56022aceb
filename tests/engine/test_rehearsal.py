"""What limits would have done: the same rules as for real, over a row of moments."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from agents.engine.limits import Limits
from agents.engine.rehearsal import Moment, rehearse


def test_cooldown_rate_and_own_events_hold_back_as_they_would() -> None:
    limits = Limits(cooldown=60, llm_per_minute=2)
    found = rehearse(
        [Moment(0), Moment(30), Moment(60), Moment(61, own_event=True), Moment(500, expired=True)], "llm", limits
    )
    assert [one.refusal.reason if one.refusal else "" for one in found] == ["", "cooldown", "", "loop", "expired"]
    quick = Limits(cooldown=0, llm_per_minute=2, template_per_minute=3)
    for action, most in (("llm", 2), ("template", 3)):
        found = rehearse([Moment(at) for at in (9, 1, 2, 3, 4, 69)], action, quick)
        assert [one.moment.at for one in found if one.refusal is None] == [*(1, 2, 3)[:most], 69]


@given(st.lists(st.integers(0, 2_000), max_size=60), st.integers(0, 120), st.integers(0, 5))
def test_no_minute_and_no_rest_is_ever_overrun(times: list[int], cooldown: int, rate: int) -> None:
    found = rehearse([Moment(at) for at in times], "llm", Limits(cooldown=cooldown, llm_per_minute=rate))
    ran = [one.moment.at for one in found if one.refusal is None]
    assert len(found) == len(times) and ran == sorted(ran)
    assert all(later - earlier >= cooldown for earlier, later in itertools.pairwise(ran))
    assert all(sum(at - 60 < other <= at for other in ran) <= rate for at in ran)
