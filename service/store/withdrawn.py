"""What is kept beside the index of posts that the public no longer sees: it goes with them, and moderators hear of it.

Who calls these functions in a transaction has done with posts, frequencies and topics; these rows are locked after
them: deliveries, answers, traces, trials, alerts, each in the order of their ids.
"""

from collections.abc import Collection, Sequence

from service.domain import PostId
from service.store.alerts import flag_citing
from service.store.pool import Connection, Pool, transaction

SWEPT_HOURS = 48
"""How far back the sweep looks for what was written of a post while it was withdrawn; no answer takes as long."""

_FORGET_DELIVERIES = """
UPDATE inbox SET cooked = NULL, topic_title = NULL, topic_slug = NULL WHERE inbox_id IN (
    SELECT inbox_id FROM inbox WHERE (state ->> 'id')::bigint = ANY(%(gone)s) AND cooked IS NOT NULL
    ORDER BY inbox_id FOR UPDATE
)
"""

# An unfinished answer is read against the forum once more before it is posted; the sweep comes after it.
_FORGET_REPLIES = """
UPDATE answers SET raw = '' WHERE post_id IN (
    SELECT post_id FROM answers
    WHERE (cited && %(sources)s::bigint[] OR post_id = ANY(%(gone)s)) AND finished_at IS NOT NULL AND raw <> ''
    ORDER BY post_id FOR UPDATE
)
"""

# A draft says what its sources say, and queries are made of the question.
_FORGET_TRACES = """
UPDATE traces SET trace = trace || jsonb_build_object(
    'candidates', ARRAY(
        SELECT CASE WHEN (one ->> 'post_id')::bigint = ANY(%(sources)s)
               THEN one || '{"title": "", "slug": "", "body": ""}' ELSE one END
        FROM jsonb_array_elements(trace -> 'candidates') WITH ORDINALITY AS every (one, place) ORDER BY place
    ),
    'sources', ARRAY(
        SELECT CASE WHEN (one ->> 'post_id')::bigint = ANY(%(sources)s)
               THEN one || '{"title": "", "slug": "", "excerpt": ""}' ELSE one END
        FROM jsonb_array_elements(trace -> 'sources') WITH ORDINALITY AS every (one, place) ORDER BY place
    )
) || CASE WHEN post_id = ANY(%(gone)s) OR EXISTS (
         SELECT FROM jsonb_array_elements(trace -> 'sources') AS one
         WHERE (one ->> 'post_id')::bigint = ANY(%(sources)s)
     ) THEN '{"evidence": "", "draft": "", "first_draft": ""}'::jsonb ELSE '{}' END
  || CASE WHEN post_id = ANY(%(gone)s) THEN '{"asked": "", "queries": []}'::jsonb ELSE '{}' END
WHERE trace_id IN (
    SELECT trace_id FROM traces WHERE (quoted && %(sources)s::bigint[] OR post_id = ANY(%(gone)s)) AND trace <> '{}'
    ORDER BY trace_id FOR UPDATE
)
"""

# A question is its member's own words, whatever was made of it.
_FORGET_QUESTIONS = """
WITH waiting AS (DELETE FROM unanswered WHERE post_id = ANY(%(gone)s)),
     tests AS (DELETE FROM test_questions WHERE post_id = ANY(%(gone)s))
UPDATE answer_deeds SET raw = NULL WHERE post_id = ANY(%(gone)s) AND raw IS NOT NULL
"""

# A trial is kept for a day: asking again costs less than telling which of its texts say what the post said.
_FORGET_TRIALS = """
UPDATE trials SET state = 'failed', result = NULL, error = 'a post that it had found is gone: ask again'
WHERE trial_id IN (
    SELECT trial_id FROM trials WHERE result IS NOT NULL AND quoted_posts(result -> 'trace') && %(sources)s::bigint[]
    ORDER BY trial_id FOR UPDATE
)
"""

_MENTIONED_BUT_GONE = """
SELECT post_id, refusal IS NOT DISTINCT FROM 'opted_out' AS readable FROM posts WHERE post_id IN (
    SELECT unnest(quoted || post_id) FROM traces WHERE recorded_at > now() - make_interval(hours => %(hours)s)
    UNION SELECT unnest(cited || post_id) FROM answers WHERE finished_at > now() - make_interval(hours => %(hours)s)
    UNION SELECT unnest(quoted_posts(result -> 'trace')) FROM trials WHERE result IS NOT NULL
) AND (refusal <> 'bot_author' OR refusal IS NULL)
  AND NOT EXISTS (SELECT FROM public_posts WHERE public_posts.post_id = posts.post_id)
ORDER BY post_id
"""


async def forget_beside(conn: Connection, gone: Sequence[PostId], *, readable: Collection[PostId] = ()) -> None:
    """Empty what is kept of these posts' words beside the index, and flag the answers that cite them.

    Those that everyone can still read (`readable`) are only no source any more: a question among them keeps its answer.
    """
    if not gone:
        return
    for statement in (_FORGET_DELIVERIES, _FORGET_REPLIES, _FORGET_TRACES, _FORGET_QUESTIONS, _FORGET_TRIALS):
        await conn.execute(statement, {"sources": list(gone), "gone": [one for one in gone if one not in readable]})
    await flag_citing(conn, gone)


async def sweep(pool: Pool) -> int:
    """The same for posts that were withdrawn while an answer was made of them; how many were mentioned."""
    async with transaction(pool) as conn:
        cursor = await conn.execute(_MENTIONED_BUT_GONE, {"hours": SWEPT_HOURS})
        gone = {PostId(post_id): readable async for post_id, readable in cursor}
        await forget_beside(conn, list(gone), readable=[one for one, readable in gone.items() if readable])
    return len(gone)
