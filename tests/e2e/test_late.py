"""A question that waited too long, from the webhook to the forum: its sources alone, or nothing."""

from datetime import timedelta
from pathlib import Path

from service.answer.messages import Message, wordings
from service.domain import ENGLISH, Result
from tests.e2e.loop import whole_loop
from tests.e2e.test_silence import Scene, counted_since, skips

AGO = timedelta(minutes=15)


async def test_a_late_question_gets_its_sources_or_nothing_where_people_have_answered(
    database_url: str, tmp_path: Path
) -> None:
    async with whole_loop(database_url, tmp_path) as loop:
        scene, before = Scene(loop), skips()
        answered_topic, asked_again = scene.topic("Where somebody knows"), scene.topic("Where two ask the bot")
        alone = scene.post(at=scene.now - AGO)
        answered = scene.post(topic=answered_topic, at=scene.now - AGO)
        scene.post("Turn the key a quarter of a turn.", by="Zoé", topic=answered_topic)
        first = scene.post(topic=asked_again, at=scene.now - AGO)
        scene.post("I wonder too, since mine gurgles as well.", topic=asked_again)  # the asker himself
        second = scene.post("@ariane and how do I bleed a radiator without a key?", by="Zoé", topic=asked_again)
        await loop.drain()

        trace = await loop.trace(alone)
        assert trace is not None
        assert (trace.outcome, trace.reason) == ("posted", Result.ANSWERED)
        assert trace.trace.notes == ["late", "sources_alone"]
        assert trace.trace.waited_seconds is not None
        assert AGO.total_seconds() <= trace.trace.waited_seconds < 2 * AGO.total_seconds()
        (reply,) = loop.replies(loop.room.forum.posts[alone].number)
        assert reply.split("\n\n")[0] in wordings()[ENGLISH].messages[Message.LATE]
        assert f"{loop.settings.forum.base_url}/t/how-to-bleed-a-radiator/10/" in reply

        assert loop.replies(topic=answered_topic) == []
        trace = await loop.trace(answered)
        assert trace is not None
        assert (trace.outcome, trace.reason) == ("skipped", "answered_by_people")
        assert counted_since(before) == {"answered_by_people": 1}

        # Who only asks the bot as well has not answered; his own question came in time.
        for post, late in ((first, True), (second, False)):
            trace = await loop.trace(post)
            assert trace is not None
            assert (trace.outcome, "late" in trace.trace.notes) == ("posted", late)
