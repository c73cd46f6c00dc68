"""Answers in the ledger, with traces that have something of everything, for the tests of the moderators' pages."""

from dataclasses import replace
from datetime import datetime

from service.answer.ports import FixedReply
from service.domain import (
    Candidate,
    CategoryId,
    Mode,
    Outcome,
    Post,
    Posted,
    PostId,
    Result,
    Shadowed,
    Source,
    Topic,
    TopicId,
    Trace,
    Zone,
)
from service.store.corpus import CorpusStore
from service.store.ledger import LedgerStore
from service.store.pool import Pool
from tests.integration.store_data import NOON, PRIVATE, PUBLIC, TOPIC, later, post

RAW = "Water them evenly, see [1 · Tomatoes](https://forum.example/t/tomatoes/10/3).\n\nA footer."
STAFF_TOPIC = Topic(TopicId(20), "Staff matters", "staff-matters", PRIVATE.id, "regular")
SHADOWED = Shadowed(Result.ANSWERED)
POSTED = Posted(Result.ANSWERED, PostId(150))


def candidate(number: int, *, title: str = "Tomatoes", cosine: float | None = 0.8, logit: float | None) -> Candidate:
    return Candidate(
        PostId(100 + number),
        TOPIC.id,
        number,
        title,
        "tomatoes",
        "They crack when the water comes unevenly.",
        "ines",
        NOON,
        cosine=cosine,
        logit=logit,
    )


def trace(asked: str = "why do my <b>tomatoes</b> crack?", **changes: object) -> Trace:
    """A trace of an answer with two candidates, the first of which is its one source."""
    first = candidate(3, logit=2.5)
    source = Source(
        1, first.post_id, TOPIC.id, 3, "Tomatoes", "tomatoes", "Unevenly watered.", "ines", NOON, 0.8, first.logit
    )
    whole = Trace(
        asked=asked,
        queries=["why do tomatoes crack", asked],
        lang="en",
        mode=Mode.RERANKED,
        zone=Zone.NORMAL,
        candidates=(first, candidate(5, title="", cosine=None, logit=-1.25)),
        sources=(source,),
        evidence="--- abc source 1\nUnevenly watered.\n--- abc end of source 1",
        draft="Water them evenly [[1]].",
        drafted_by="qwen",
        first_draft="They crack.",
        checks=["failed: unsupported, repeats", "passed"],
        removed={"link": 2},
        notes=["condensed_by_model"],
        timings_ms={"retrieve": 20.0, "generate": 1480.0},
    )
    return replace(whole, **changes)  # type: ignore[arg-type]  # the fields of a trace, by name


async def open_places(pool: Pool) -> None:
    """The public category with its topic, and the staff's with theirs."""
    corpus = CorpusStore(pool)
    await corpus.put_categories([PUBLIC, PRIVATE])
    await corpus.put_topics([TOPIC, STAFF_TOPIC])


async def answered(
    pool: Pool,
    question: Post | None = None,
    *,
    what: Outcome = SHADOWED,
    of: Trace | None = None,
    raw: str = RAW,
    cited: tuple[PostId, ...] = (PostId(103),),
    at: datetime | None = None,
) -> Post:
    """A finished answer to this post, as answering leaves it."""
    question, ledger = question or post(40), LedgerStore(pool)
    await ledger.claim(question, now=at or NOON)
    await ledger.place(question.id, question.category_id or CategoryId(1))
    result = what.result if isinstance(what, Posted | Shadowed) else Result.ANSWERED
    await ledger.fix_reply(question.id, FixedReply(raw, result, cited), of or trace())
    await ledger.finish(question.id, what, None, reply_post_number=50, now=at or later(1))
    return question
