"""The page of unanswered questions: what is collected, grouped, shown to whom, and gone in time."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from service.answer.unanswered import group_unanswered
from service.domain import Posted, PostId, Result, Shadowed, TopicId
from service.settings import RetentionSettings
from service.store.corpus import CorpusStore
from service.store.pool import Pool
from service.store.unanswered import UnansweredStore
from tests.fakes.answering import FakeEmbedder
from tests.integration.answers_kit import answered, open_places, trace
from tests.integration.store_data import NOON, PRIVATE, later, post, rows
from tests.moderators import ADMIN, Pages, open_pages, visible

NOTHING = Shadowed(Result.ABSTAINED)


@pytest.fixture
async def pages(pool: Pool) -> AsyncIterator[Pages]:
    await open_places(pool)
    async with open_pages(pool) as opened:
        await opened.sign_in()
        yield opened


async def collect(pool: Pool) -> None:
    await group_unanswered(UnansweredStore(pool, since=NOON - timedelta(days=1)), FakeEmbedder())


async def asked(pool: Pool, number: int, question: str, *, days: float = 0, what: Posted | Shadowed = NOTHING) -> None:
    at = later(60 * 24 * days)
    await answered(pool, post(number), what=what, of=trace(question, queries=[question], lang="en"), at=at)


async def kept(pool: Pool) -> list[int]:
    return [row[0] for row in await rows(pool, "SELECT post_id FROM unanswered ORDER BY post_id")]


async def test_the_same_questions_stand_together_the_most_asked_first(pages: Pages, pool: Pool) -> None:
    await asked(pool, 41, "which <b>pot</b> suits basil best")
    await asked(pool, 42, "how deep do tomato roots go", days=1)
    await asked(pool, 43, "how deep do the tomato roots go", days=2, what=Posted(Result.ABSTAINED, PostId(150)))
    await asked(pool, 44, "why do leaves curl", what=Posted(Result.ANSWERED, PostId(151)))
    await collect(pool)
    html = await pages.text("/unanswered")
    text = visible(html)
    assert text.index("how deep do the tomato roots go asked 2 times") < text.index("asked once")
    assert "which &lt;b&gt;pot&lt;/b&gt; suits basil best" in text
    assert "leaves" not in text
    assert 'href="https://forum.example/t/tomatoes/10/43"' in html
    assert 'href="/moderation/answers/142"' in html
    assert "posée 2 fois" in visible(await pages.text("/unanswered", lang="fr"))


async def test_what_a_moderator_cant_see_is_not_shown(pages: Pages, pool: Pool) -> None:
    of = trace("a secret of the staff", queries=["a secret of the staff"])
    await answered(pool, post(41, topic_id=TopicId(20), category_id=PRIVATE.id), what=NOTHING, of=of)
    await answered(pool, post(42, archetype="private_message"), what=NOTHING, of=of)
    await collect(pool)
    assert "secret" not in await pages.text("/unanswered")
    await pages.sign_in(ADMIN)
    assert "asked 2 times" in visible(await pages.text("/unanswered"))


async def test_a_group_goes_when_nobody_asked_it_for_so_long(pages: Pages, pool: Pool) -> None:
    await asked(pool, 41, "which pot suits basil best")
    await asked(pool, 42, "how deep do tomato roots go")
    await asked(pool, 43, "how deep do the tomato roots go", days=30)
    await collect(pool)
    store = UnansweredStore(pool, since=NOON)
    retention = RetentionSettings(unanswered_days=90, unanswered_questions=3)
    assert await store.expire(retention, now=NOON + timedelta(days=91)) == 1
    assert await kept(pool) == [142, 143]
    await asked(pool, 44, "may basil stand in the sun", days=40)
    await asked(pool, 45, "do snails eat basil", days=50)
    await collect(pool)
    assert await store.expire(retention, now=NOON + timedelta(days=91)) == 1
    assert await kept(pool) == [143, 144, 145]


async def test_a_question_goes_with_its_post(pages: Pages, pool: Pool) -> None:
    await asked(pool, 41, "which pot suits basil best")
    await collect(pool)
    await CorpusStore(pool).remove_post(PostId(141), updated_at=later(9))
    assert await kept(pool) == []
    await collect(pool)
    assert await kept(pool) == []


async def test_there_is_none_at_first(pages: Pages) -> None:
    assert "There is none." in visible(await pages.text("/unanswered?page=2"))
