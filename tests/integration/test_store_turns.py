"""A member's earlier turns: his own, of that topic, public, before the question, oldest first."""

from dataclasses import replace

from service.domain import TopicId, UserId
from service.ingest.ports import Refusal
from service.store.corpus import CorpusStore
from service.store.pool import Pool
from service.store.turns import TurnStore
from tests.integration.store_data import PRIVATE, PUBLIC, TOPIC, indexed, post


async def test_a_members_own_public_turns_before_the_question(pool: Pool) -> None:
    corpus = CorpusStore(pool)
    hidden = replace(TOPIC, id=TopicId(12), category_id=PRIVATE.id)
    await corpus.put_categories([PUBLIC, PRIVATE])
    await corpus.put_topics([TOPIC, replace(TOPIC, id=TopicId(11)), hidden])
    await corpus.put_posts(
        [
            *(indexed(post(number), f"turn {number}") for number in (1, 3, 5, 6, 9)),
            indexed(post(4, user_id=UserId(8)), "another's"),
            indexed(post(2), refusal=Refusal.HIDDEN),
            indexed(post(20, post_number=4, topic_id=TopicId(11)), "elsewhere"),
            indexed(post(21, post_number=1, topic_id=hidden.id), "private"),
        ]
    )
    turns = TurnStore(pool)
    asked = post(8)
    assert await turns.before(asked, 3) == ("turn 3", "turn 5", "turn 6")
    assert await turns.before(asked, 9) == ("turn 1", "turn 3", "turn 5", "turn 6")
    assert await turns.before(replace(asked, user_id=None), 3) == ()
    assert await turns.before(post(22, post_number=2, topic_id=hidden.id), 3) == ()
