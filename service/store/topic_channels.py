"""Search by whole topics, over what the public sees now: by their words, their mean vector, their first post.

What a question excludes is one run of posts of one topic (`asking_topic`, from `from_number` to `to_number`). The words
and the mean of that topic are then those of its other posts.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, LiteralString

from pgvector import HalfVector
from psycopg.rows import dict_row

from service.domain import Candidate, ProfileId, TopicHit, TopicId, TopicScores, Vector
from service.store.bm25 import ASKED, OF_POST, rarity, score
from service.store.pool import Connection
from service.store.topics import WHOLE_POST

_LAST = 2**31 - 1
"""No post number is higher."""


class Grain(StrEnum):
    """What a vector of a topic stands for."""

    MEAN = "mean"
    FIRST = "first"


OTHERS_LENGTH = "public_topics.length - CASE WHEN topic_id = %(asking_topic)s THEN left_length.length ELSE 0 END"

WORDED = f"""
WITH left_out AS MATERIALIZED (
    SELECT post_id, length FROM posts
    WHERE topic_id = %(asking_topic)s AND post_number BETWEEN %(from_number)s AND %(to_number)s
), held AS (
    SELECT lexeme, topic_id, sum(tf)::float8 AS tf FROM postings
    WHERE lexeme = ANY(%(lexemes)s)
      AND NOT (topic_id = %(asking_topic)s AND post_id IN (SELECT post_id FROM left_out))
    GROUP BY lexeme, topic_id
), asked AS (
    SELECT lexeme, {rarity("%(topics)s", "count(*)")} AS idf FROM held GROUP BY lexeme
), left_length AS (SELECT coalesce(sum(length), 0) AS length FROM left_out)
SELECT topic_id, {score("idf", OTHERS_LENGTH, "%(mean_topic_length)s")} AS score
FROM held JOIN asked USING (lexeme) JOIN public_topics USING (topic_id) CROSS JOIN left_length
GROUP BY topic_id ORDER BY score DESC, topic_id LIMIT %(limit)s
"""  # noqa: S608 - made of constants

NEAREST = f"""
WITH nearest AS MATERIALIZED (
    SELECT topic_id, embedding <=> %(vector)s::halfvec AS distance FROM topic_embeddings
    WHERE profile_id = %(profile_id)s AND grain = %(grain)s ORDER BY distance LIMIT %(window)s
), own AS (
    SELECT topic_id, avg(embedding) <=> %(vector)s::halfvec AS distance FROM (
        SELECT topic_id, {WHOLE_POST} AS embedding FROM embeddings JOIN posts USING (post_id)
        WHERE profile_id = %(profile_id)s AND topic_id = %(asking_topic)s
          AND (%(grain)s = 'mean' OR post_number = 1 AND passage = 0)
          AND NOT post_number BETWEEN %(from_number)s AND %(to_number)s
        GROUP BY topic_id, post_id
    ) AS of_posts GROUP BY topic_id
)
SELECT topic_id, 1 - distance AS score FROM (
    SELECT * FROM nearest WHERE topic_id <> %(asking_topic)s UNION ALL SELECT * FROM own
) AS found JOIN public_topics USING (topic_id) WHERE distance <> 'NaN' ORDER BY distance, topic_id LIMIT %(limit)s
"""  # noqa: S608 - made of constants

ANSWERING = """
coalesce(%(worded)s + %(words)s * bm25 / max(bm25) OVER (PARTITION BY topic_id), 0)
+ %(asks)s * (octet_length(body) - octet_length(replace(body, '?', '')))
  / (1 + octet_length(body) - octet_length(replace(replace(body, '.', ''), '?', '')))
+ %(log_length)s * ln(1 + length(body)) + %(first)s * (post_number = 1)::int
"""
"""How likely a post answers, among those of its topic, by its `bm25` and the beginning of its `body`; see ANSWERS."""

NOT_ASKING_US = "NOT EXISTS (SELECT FROM answers WHERE answers.post_id = public_posts.post_id)"
"""A post that asked us is no source: it resembles the next one who asks that more than any answer does. The ledger has
them all. Where people have answered it, its topic is found by it all the same."""

BEST_POSTS = f"""
WITH of_topics AS MATERIALIZED (
    SELECT post_id, topic_id, post_number, left(body, %(read_chars)s) AS body FROM public_posts
    WHERE topic_id = ANY(%(topic_ids)s)
      AND NOT (topic_id = %(asking_topic)s AND post_number BETWEEN %(from_number)s AND %(to_number)s)
      AND {NOT_ASKING_US}
), asked AS ({ASKED}), near AS (
    SELECT post_id, max(1 - (embedding <=> %(vector)s::halfvec)) AS cosine
    FROM of_topics JOIN embeddings USING (post_id) WHERE profile_id = %(profile_id)s GROUP BY post_id
), worded AS (
    SELECT post_id, {OF_POST} AS bm25
    FROM of_topics JOIN postings USING (post_id) JOIN asked USING (lexeme) GROUP BY post_id
), ranked AS (
    SELECT post_id, topic_id, cosine, bm25,
           max(cosine) OVER (PARTITION BY topic_id) AS topic_cosine,
           max(bm25) OVER (PARTITION BY topic_id) AS topic_bm25,
           {ANSWERING} AS answers
    FROM of_topics LEFT JOIN near USING (post_id) LEFT JOIN worded USING (post_id)
), best AS (
    SELECT DISTINCT ON (topic_id) post_id, topic_id, cosine, bm25, topic_cosine, topic_bm25 FROM ranked
    ORDER BY topic_id, answers DESC, cosine DESC NULLS LAST, post_id
), own AS (
    SELECT topic_id, avg(embedding) AS mean FROM (
        SELECT topic_id, {WHOLE_POST} AS embedding FROM embeddings JOIN posts USING (post_id)
        WHERE profile_id = %(profile_id)s AND topic_id = %(asking_topic)s
          AND NOT post_number BETWEEN %(from_number)s AND %(to_number)s
        GROUP BY topic_id, post_id
    ) AS of_posts GROUP BY topic_id
)
SELECT public_posts.*, cosine, bm25, topic_cosine, topic_bm25,
       1 - (coalesce(own.mean, mean.embedding) <=> %(vector)s::halfvec) AS topic_mean,
       CASE WHEN public_posts.topic_id = %(asking_topic)s AND 1 BETWEEN %(from_number)s AND %(to_number)s THEN NULL
            ELSE 1 - (first.embedding <=> %(vector)s::halfvec) END AS topic_first
FROM best JOIN public_posts USING (post_id, topic_id) LEFT JOIN own USING (topic_id)
LEFT JOIN topic_embeddings AS mean
    ON mean.profile_id = %(profile_id)s AND mean.grain = 'mean' AND mean.topic_id = public_posts.topic_id
LEFT JOIN topic_embeddings AS first
    ON first.profile_id = %(profile_id)s AND first.grain = 'first' AND first.topic_id = public_posts.topic_id
"""  # noqa: S608 - made of constants

ANSWERS = {"words": 1.7, "asks": -3.8, "log_length": 0.24, "first": -4.5, "worded": 2.0}
"""What makes a post the one of its topic that answers: its BM25 as a share of the topic's highest, the share of its
sentences that ask, the logarithm of its length, being the first post, which mostly asks. By conditional logistic
regression within 408 topics of a forum: it then is the one that answers in 58 of 100 questions unseen, against 32 by
BM25 and cosine fused, since the post that resembles a question most is the one that asks it. Cosine had no weight, and
breaks ties. `worded`, for holding any word that is asked, changed nothing there; it keeps a "thanks!" from standing for
its topic."""

READ_CHARS = 3_000
"""How much of a post is looked at for it."""

SIMILAR = 0.4
"""Least similarity of trigrams of a word to the one that is meant: measured on the typos of a labelled forum."""

SIMILAR_WORDS = 3
"""How many words of the index may stand for one that it doesn't have."""

MISSPELT = 8
"""How many words of a question are looked up in this way."""

MISSPELT_CHARS = 5
"""Shorter words have too many neighbours."""

RESEMBLING = """
SELECT word, resembling.lexeme, resembling.posts FROM unnest(%(words)s::text[]) AS unknown (word), LATERAL (
    SELECT lexeme, posts FROM document_frequencies WHERE lexeme %% word
    ORDER BY similarity(lexeme, word) DESC, posts DESC, lexeme LIMIT %(similar)s
) AS resembling
"""


def excluding(exclude_from: tuple[TopicId, int] | None, exclude_post: tuple[TopicId, int] | None) -> dict[str, Any]:
    """The parameters of what is left out: a topic's posts from a number on, or one post (both: ValueError)."""
    if exclude_post is not None:
        if exclude_from is not None:
            raise ValueError("exclude_from and exclude_post at once: one run of posts can be left out")
        topic_id, number = exclude_post
        return {"asking_topic": topic_id, "from_number": number, "to_number": number}
    topic_id, number = exclude_from or (TopicId(0), 0)  # topic ids start at 1
    return {"asking_topic": topic_id, "from_number": number, "to_number": _LAST}


async def topics_by_words(conn: Connection, parameters: Mapping[str, Any]) -> list[TopicHit]:
    """The public topics of highest BM25 of their whole text; frequencies are counted by topic."""
    return await _hits(conn, WORDED, parameters)


async def topics_by_vector(
    conn: Connection, profile_id: ProfileId, vector: Vector, grain: Grain, parameters: Mapping[str, Any]
) -> list[TopicHit]:
    """The public topics of highest cosine at that grain; where too many are private now, all are looked at."""
    limit = parameters["limit"]
    given = {**parameters, "profile_id": profile_id, "vector": HalfVector(vector), "grain": grain}
    found = await _hits(conn, NEAREST, given | {"window": 2 * limit})
    return found if len(found) >= limit else await _hits(conn, NEAREST, given | {"window": None})


async def best_posts(conn: Connection, parameters: Mapping[str, Any]) -> list[Candidate]:
    """Of each of these topics the public post that is likeliest to answer (ANSWERS), in no order."""
    given = {**parameters, **ANSWERS, "read_chars": READ_CHARS}
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(BEST_POSTS, given, prepare=False)
        return [_candidate(row) for row in await cursor.fetchall()]


def _candidate(row: dict[str, Any]) -> Candidate:
    cosine, mean, first, bm25 = (row.pop(f"topic_{name}") for name in ("cosine", "mean", "first", "bm25"))
    return Candidate(**row, topic=TopicScores(cosine=cosine, mean=mean, first=first, bm25=bm25))


async def asked_words(conn: Connection, lexemes: Sequence[str], limit: int, common: int) -> list[str]:
    """The `limit` rarest of the lexemes, those that no post has replaced by ones that resemble them.

    Rare is counted in posts; what more than `common` have is left out where anything else is there, and what nothing
    resembles is, too. Order and repeats are kept. In a transaction.
    """
    cursor = await conn.execute(
        "SELECT lexeme, posts FROM document_frequencies WHERE lexeme = ANY(%s)", (list(lexemes),)
    )
    posts: dict[str, int] = {lexeme: number async for lexeme, number in cursor}
    unknown = [one for one in dict.fromkeys(lexemes) if one not in posts and len(one) >= MISSPELT_CHARS][:MISSPELT]
    meant: dict[str, list[str]] = {}
    if unknown:
        await conn.execute("SELECT set_config('pg_trgm.similarity_threshold', %s, true)", (str(SIMILAR),))
        cursor = await conn.execute(RESEMBLING, {"words": unknown, "similar": SIMILAR_WORDS})
        async for word, lexeme, number in cursor:
            meant.setdefault(word, []).append(lexeme)
            posts[lexeme] = number
    asked = [lexeme for one in lexemes for lexeme in meant.get(one, [one]) if posts.get(lexeme)]
    most = max(common, min((posts[one] for one in asked), default=0))
    rarest = frozenset(sorted({one for one in asked if posts[one] <= most}, key=lambda one: (posts[one], one))[:limit])
    return [lexeme for lexeme in asked if lexeme in rarest]


async def _hits(conn: Connection, statement: LiteralString, parameters: Mapping[str, Any]) -> list[TopicHit]:
    # Never prepared: a generic plan would know neither the window nor how frequent the words are.
    cursor = await conn.execute(statement, parameters, prepare=False)
    return [TopicHit(topic_id, score) for topic_id, score in await cursor.fetchall()]
