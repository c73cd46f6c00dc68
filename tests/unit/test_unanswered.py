"""Which unanswered questions stand together: by vectors where there are enough of them, else by their words."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.answer.ports import Unanswered
from service.answer.unanswered import BATCH, LEAST_TO_CENTRE, group_unanswered, grouped
from service.domain import PostId, Vector
from service.errors import Transient
from tests.fakes.answering import FakeEmbedder


def asked(number: int, question: str, vector: Vector | None = None, group: int | None = None) -> Unanswered:
    return Unanswered(PostId(number), question, vector, None if group is None else PostId(group))


def near(direction: int, seed: int, *, among: int = 8) -> Vector:
    """A unit vector near one of so many directions; all of them lean the same way, as a model's do."""
    vector = np.full(among, 3.0)
    vector[direction] += 4.0
    vector += np.random.default_rng(seed).normal(0, 0.1, among)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def test_questions_of_one_direction_stand_together() -> None:
    questions = [asked(n, f"question {n}", near(n % 8, n)) for n in range(1, 41)]
    groups = grouped(questions)
    assert groups == {PostId(n): PostId((n - 1) % 8 + 1) for n in range(1, 41)}


def test_a_few_are_told_by_their_words() -> None:
    questions = [
        asked(1, "How do I bleed a radiator?", near(0, 1)),
        asked(2, "Which pots for tomatoes?", near(0, 2)),
        asked(3, "how to bleed the radiators", near(1, 3)),
        asked(4, ""),
        asked(5, ""),
    ]
    assert grouped(questions) == {1: 1, 2: 2, 3: 1, 4: 4, 5: 5}


def test_one_without_a_vector_joins_by_its_words() -> None:
    questions = [asked(n, f"question about thing{n % 8} number{n}", near(n % 8, n)) for n in range(1, 31)]
    groups = grouped([*questions, asked(99, "Question about thing5 number5")])
    assert groups[PostId(99)] == groups[PostId(5)]


@given(st.lists(st.tuples(st.text(max_size=20), st.booleans()), max_size=60))
def test_every_question_is_in_the_group_of_an_earlier_one_or_its_own(said: list[tuple[str, bool]]) -> None:
    questions = [asked(n, text, near(n % 3, n) if has else None) for n, (text, has) in enumerate(said, start=1)]
    groups = grouped(questions)
    assert set(groups) == {one.post_id for one in questions}
    assert all(groups[name] == name for name in groups.values())


class Kept:
    """Kept questions in a list."""

    def __init__(self, questions: list[Unanswered]) -> None:
        self.questions = questions

    async def collect(self) -> None:
        pass

    async def all(self, profile: str) -> list[Unanswered]:
        return list(self.questions)

    async def put(self, questions: Sequence[Unanswered], profile: str) -> None:
        new = {one.post_id: one for one in questions}
        self.questions = [new.get(one.post_id, one) for one in self.questions]


async def test_a_round_embeds_a_batch_and_groups_all() -> None:
    kept = Kept([asked(n, f"radiator {n}") for n in range(1, BATCH + 11)])
    embedder = FakeEmbedder()
    assert await group_unanswered(kept, embedder) == BATCH + 10
    assert sum(one.vector is not None for one in kept.questions) == BATCH
    assert await group_unanswered(kept, embedder) >= 10
    assert all(one.vector is not None and one.group_id is not None for one in kept.questions)
    assert await group_unanswered(kept, embedder) == 0


async def test_words_do_while_the_model_is_down() -> None:
    kept = Kept([asked(1, "bleed a radiator"), asked(2, "bleed the radiator")])
    embedder = FakeEmbedder()
    embedder.down = Transient("down")
    assert await group_unanswered(kept, embedder) == 2
    assert [one.group_id for one in kept.questions] == [1, 1]
    assert await group_unanswered(kept, embedder) == 0
    assert LEAST_TO_CENTRE > 2
