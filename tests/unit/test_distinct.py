"""Near-duplicates: what counts as the same, which one stays, and that nothing else goes."""

from hypothesis import given
from hypothesis import strategies as st

from service.answer.distinct import distinct
from tests.fakes.answering import FakeReranker, World, candidate
from tests.unit.test_pipeline import ask

SAID = "Water tomatoes in pots every single morning, and feed them once a week from July on."


def test_the_first_of_those_that_say_the_same_stays() -> None:
    posts = [
        candidate(1, body="Slugs eat them."),
        candidate(2, body=SAID),
        candidate(3, body=f"{SAID.upper()} Indeed!"),
    ]
    assert [one.post_id for one in distinct(posts)] == [1, 2]
    assert [one.post_id for one in distinct(posts[::-1])] == [3, 1]


def test_short_posts_are_alike_by_chance() -> None:
    assert len(distinct([candidate(n, body="Thanks, that helped!") for n in range(4)])) == 4


def test_a_quarter_of_other_words_makes_another_post() -> None:
    other = f"{SAID} Mulch with straw so they stay moist."
    assert len(distinct([candidate(1, body=SAID), candidate(2, body=other)])) == 2


@given(st.lists(st.text("ab c", max_size=40), max_size=8))
def test_order_is_kept_the_first_stays_and_nothing_more_goes_at_a_second_look(bodies: list[str]) -> None:
    posts = [candidate(n, body=body) for n, body in enumerate(bodies, start=1)]
    kept = distinct(posts)
    assert [one.post_id for one in kept] == sorted(one.post_id for one in kept)
    assert kept[:1] == posts[:1]
    assert distinct(kept) == kept


async def test_sources_say_different_things() -> None:
    found = [candidate(1, body=SAID), candidate(2, body=f"{SAID} Indeed!"), *(candidate(n) for n in range(3, 6))]
    told, trace = await ask(World(candidates=found, reranker=FakeReranker({n: 9.0 - n for n in range(1, 6)})))
    assert [source.post_id for source in told.sources] == [1, 3, 4, 5]
    assert len(trace.candidates) == 5
