"""The keyword index: each post's postings, and document frequencies that are exact whoever writes at once.

Who calls these functions holds the row locks of the posts concerned; frequencies are locked after them, in the order of
their lexemes. Every writer does, so that none waits for another in a circle.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from operator import itemgetter

from service.domain import PostId, TopicId
from service.ingest.ports import IndexedPost
from service.store.pool import Connection

_COUNT = """
INSERT INTO document_frequencies AS stored (lexeme, posts)
SELECT * FROM unnest(%s::text[], %s::integer[]) AS change (lexeme, posts) ORDER BY lexeme COLLATE "C"
ON CONFLICT (lexeme) DO UPDATE SET posts = stored.posts + excluded.posts
"""


_ESCAPED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
"""What COPY's text format gives a meaning to."""


@dataclass(frozen=True, slots=True)
class Terms:
    """A post's term counts, the number of its lexemes and its topic; none for a post that leaves the index."""

    counts: Mapping[str, int]
    length: int
    topic_id: TopicId | None = None


NO_TERMS = Terms({}, 0)


def terms_of(indexed: IndexedPost) -> Terms:
    """What the index holds of a post that is ready to be stored."""
    return Terms(indexed.terms, indexed.length, indexed.post.topic_id) if indexed.terms else NO_TERMS


async def put_postings(conn: Connection, terms: Mapping[PostId, Terms], *, new: Collection[PostId] = ()) -> None:
    """Make the postings of these posts agree with their terms; those that agree already aren't touched.

    Who calls this has to refresh the topics that the posts were in and are in. Call it once in a transaction: a second
    pass over the frequencies would break their order. `new` posts have no postings yet.
    """
    stored = await _stored(conn, terms.keys() - set(new))
    changed = {post_id: now for post_id, now in terms.items() if stored.get(post_id, NO_TERMS) != now}
    if stored:
        await conn.execute("DELETE FROM postings WHERE post_id = ANY(%s)", (list(stored.keys() & changed.keys()),))
    await _insert(conn, changed)
    change = Counter(lexeme for now in changed.values() for lexeme in now.counts)
    change.subtract(lexeme for post_id in changed for lexeme in stored.get(post_id, NO_TERMS).counts)
    await _count(conn, change)


async def _stored(conn: Connection, post_ids: Collection[PostId]) -> dict[PostId, Terms]:
    if not post_ids:
        return {}
    cursor = await conn.execute(
        "SELECT post_id, topic_id, lexeme, tf, length FROM postings WHERE post_id = ANY(%s)", (list(post_ids),)
    )
    counts: dict[PostId, dict[str, int]] = defaultdict(dict)
    rest = {}
    async for post_id, topic_id, lexeme, tf, length in cursor:
        counts[post_id][lexeme] = tf
        rest[post_id] = (length, topic_id)
    return {post_id: Terms(found, *rest[post_id]) for post_id, found in counts.items()}


async def _insert(conn: Connection, terms: Mapping[PostId, Terms]) -> None:
    by_lexeme: dict[str, list[str]] = defaultdict(list)
    for post_id, one in sorted(terms.items(), key=itemgetter(0)):
        topic = "\\N" if one.topic_id is None else one.topic_id
        for lexeme, tf in one.counts.items():
            by_lexeme[lexeme].append(f"\t{post_id}\t{topic}\t{tf}\t{one.length}\n")
    if not by_lexeme:
        return
    words = ((lexeme.translate(_ESCAPED), by_lexeme[lexeme]) for lexeme in sorted(by_lexeme))
    # In the index's order, which saves it a third of its work, and as one text: a write_row each takes thrice as long.
    rows = "".join(word + word.join(rest) for word, rest in words)
    columns = "COPY postings (lexeme, post_id, topic_id, tf, length) FROM STDIN"
    async with conn.cursor() as cursor, cursor.copy(columns) as copy:
        await copy.write(rows)


async def _count(conn: Connection, change: Counter[str]) -> None:
    changed = {lexeme: by for lexeme, by in change.items() if by}
    if changed:
        await conn.execute(_COUNT, (list(changed), list(changed.values())))
    fewer = [lexeme for lexeme, by in changed.items() if by < 0]
    if fewer:  # a word that no public post holds any more must not stay readable
        await conn.execute("DELETE FROM document_frequencies WHERE lexeme = ANY(%s) AND posts = 0", (fewer,))
