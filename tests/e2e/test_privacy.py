"""What must be nowhere in the database: private words from their receipt on, public ones once they are withdrawn."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from psycopg import sql
from psycopg.rows import dict_row

from service.lexer import query_lexemes
from service.simulator.forum import Author
from service.store.pool import Pool, connection
from service.store.search import SearchStore
from tests.e2e.loop import QUESTION, Loop
from tests.e2e.test_silence import STAFF_TOPIC, Scene

UNLISTED_TOPIC = 13


async def places_of(pool: Pool, word: str) -> set[str]:
    """Every `table.column` of the database that holds the word, in whatever type."""
    found = set()
    async with connection(pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            "SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns"
            " JOIN information_schema.tables USING (table_schema, table_name)"
            " WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')"
        )
        for column in await cursor.fetchall():
            name = sql.Identifier(column["column_name"])
            text = sql.SQL("encode({}, 'escape')" if column["data_type"] == "bytea" else "{}::text").format(name)
            table = sql.Identifier(column["table_schema"], column["table_name"])
            query = sql.SQL("SELECT FROM {} WHERE {} ILIKE {} LIMIT 1").format(table, text, f"%{word}%")
            if (await cursor.execute(query)).rowcount:
                found.add(f"{column['table_name']}.{column['column_name']}")
    return found


async def hits(loop: Loop, word: str) -> list[int]:
    """The posts that keyword search gives for a word."""
    found = await SearchStore(loop.services.pool).keyword_posts(query_lexemes(word), limit=10, exclude_from=None)
    return [candidate.post_id for candidate in found]


async def embedded(loop: Loop, post_id: int) -> bool:
    async with connection(loop.services.pool) as conn:
        cursor = await conn.execute("SELECT FROM embeddings WHERE post_id = %s", (post_id,))
        return bool(cursor.rowcount)


async def test_private_words_are_nowhere_from_receipt_on(loop: Loop) -> None:
    scene, pool = Scene(loop), loop.services.pool
    message = scene.topic("A message about zqmessagetitle", category_id=None, archetype="private_message")
    asks = "@ariane how do I bleed a radiator? zq"
    scene.post(f"{asks}messageasks", topic=message)
    scene.post("Just for you: zqmessagesays", topic=message)
    scene.post(f"{asks}whisperasks", by="boss", post_type=4)
    scene.post("Between us: zqwhispersays", by="boss", post_type=4)
    scene.post(f"{asks}staffasks", by="boss", topic=STAFF_TOPIC)
    edited = scene.post("For the staff: zqstaffsays", by="boss", topic=STAFF_TOPIC)
    loop.room.forum.edit_post(edited, raw="For the staff: zqstaffsays and zqstaffedits", now=scene.now)
    public = scene.post(f"{asks}publicasks and zqpublicsays")
    await loop.delivered()
    async with connection(pool) as conn:
        waiting = await (await conn.execute("SELECT task_name, args FROM procrastinate_jobs")).fetchall()
    assert len(waiting) >= 9
    assert {type(value) for _, args in waiting for value in args.values()} == {int}
    assert await places_of(pool, "zqpublic") == {"inbox.cooked"}
    for word in ("zqmessage", "zqwhisper", "zqstaff"):
        assert await places_of(pool, word) == set(), word
    await loop.drain()
    for word in ("zqmessage", "zqwhisper", "zqstaff"):
        assert await places_of(pool, word) == set(), word
    assert await hits(loop, "zqpublicsays") == [public]
    assert await embedded(loop, public)
    assert not any(place.startswith(("inbox.", "procrastinate")) for place in await places_of(pool, "zqpublic"))


def _turn_private(scene: Scene, _post: int) -> None:
    scene.forum.set_category(replace(scene.forum.categories[1], read_restricted=True))


def _unlist(scene: Scene, post: int) -> None:
    topic = scene.forum.topics[scene.forum.posts[post].topic_id]
    scene.forum.update_topic(replace(topic, visible=False), now=scene.now)


def _move_to_staff(scene: Scene, post: int) -> None:
    topic = scene.forum.topics[scene.forum.posts[post].topic_id]
    scene.forum.update_topic(replace(topic, category_id=2), now=scene.now)


def _make_a_message(scene: Scene, post: int) -> None:
    topic = scene.forum.topics[scene.forum.posts[post].topic_id]
    scene.forum.update_topic(replace(topic, category_id=None, archetype="private_message"), now=scene.now)


def _delete_by_staff(scene: Scene, post: int) -> None:
    scene.forum.delete_post(Author(scene.forum.members[1], scene.now), post)


def _delete_by_author(scene: Scene, post: int) -> None:
    scene.forum.delete_post(Author(scene.forum.members[2], scene.now), post)


def _delete_topic(scene: Scene, post: int) -> None:
    first = scene.first_post(scene.forum.posts[post].topic_id)
    scene.forum.delete_post(Author(scene.forum.members[1], scene.now), first.id)


def _hide_and_edit(scene: Scene, post: int) -> None:
    scene.forum.hide_post(post, hidden=True, now=scene.now)
    later = scene.now + timedelta(seconds=1)
    scene.forum.edit_post(post, raw=f"{scene.forum.posts[post].raw} Really.", now=later)


def _rewrite(scene: Scene, post: int) -> None:
    scene.forum.edit_post(post, raw="I took my words back.", now=scene.now + timedelta(seconds=1))


GOES: dict[str, Callable[[Scene, int], None]] = {
    "category": _turn_private,
    "unlisted": _unlist,
    "moved": _move_to_staff,
    "message": _make_a_message,
    "by staff": _delete_by_staff,
    "by author": _delete_by_author,
    "topic": _delete_topic,
    "hidden": _hide_and_edit,
    "rewritten": _rewrite,
}


@pytest.mark.parametrize("how", GOES)
async def test_what_the_public_no_longer_sees_leaves_the_database(loop: Loop, how: str) -> None:
    scene, pool = Scene(loop), loop.services.pool
    topic = scene.topic("A thread about zqbrim")
    post = scene.post("The zqbrum valve sits under the zqbrum lid.", topic=topic)
    await loop.drain()
    assert await places_of(pool, "zqbrum") == {"posts.body", "postings.lexeme", "document_frequencies.lexeme"}
    assert (await hits(loop, "zqbrum"), await embedded(loop, post)) == ([post], True)
    GOES[how](scene, post)
    await loop.drain()
    assert await places_of(pool, "zqbrum") == set()
    assert await hits(loop, "zqbrum") == []
    if how != "rewritten":
        assert not await embedded(loop, post)
    if how in ("category", "unlisted", "moved", "message", "topic"):
        assert await places_of(pool, "zqbrim") == set()


async def test_what_becomes_public_again_is_found_again_under_its_title(loop: Loop) -> None:
    scene = Scene(loop)
    topic = scene.topic("A thread about zqbrim")
    post = scene.post("The zqbrum valve sits under the zqbrum lid.", topic=topic)
    await loop.drain()
    _turn_private(scene, post)
    await loop.drain()
    scene.forum.set_category(replace(scene.forum.categories[1], read_restricted=False))
    await loop.drain()
    newer = scene.post("Another word on it.", topic=topic)
    await loop.drain()
    assert newer in await hits(loop, "zqbrim")


async def test_a_post_deleted_before_it_was_indexed_leaves_nothing(loop: Loop) -> None:
    scene = Scene(loop)
    posts = [scene.post(f"The zqbrum valve sits under lid {n}.") for n in range(3)]
    for n, post in enumerate(posts):
        (_delete_by_staff, _delete_by_author, _hide_and_edit)[n](scene, post)
    await loop.drain()
    assert await places_of(loop.services.pool, "zqbrum") == set()


async def test_the_title_of_an_unlisted_topic_is_not_kept(loop: Loop) -> None:
    scene, forum = Scene(loop), loop.room.forum
    unlisted = scene.topic("Unlisted: zqunlisted", visible=False)
    scene.post("A reply that nobody should find: zqunlistedreply", topic=unlisted)
    forum.edit_post(scene.first_post(UNLISTED_TOPIC).id, raw="Edited: zqunlistedfirst", now=scene.now)
    await loop.drain()
    assert await places_of(loop.services.pool, "zqunlisted") == set()
    forum.update_topic(replace(forum.topics[unlisted], title="Another zqunlisted title"), now=scene.now)
    await loop.drain()
    assert await places_of(loop.services.pool, "zqunlisted") == set()


async def test_a_question_that_went_meanwhile_keeps_its_words_in_no_trace(loop: Loop) -> None:
    scene = Scene(loop)
    posts = {
        "deleted": scene.post(f"{QUESTION} zqasked"),
        "hidden": scene.post(f"{QUESTION} zqhid"),
        "restricted": scene.post(f"{QUESTION} zqasked as well", topic=scene.topic()),
    }
    _delete_by_staff(scene, posts["deleted"])
    loop.room.forum.hide_post(posts["hidden"], hidden=True, now=scene.now)
    _move_to_staff(scene, posts["restricted"])
    await loop.drain()
    assert (loop.replies(), await places_of(loop.services.pool, "zqasked")) == ([], set())
    # Flags hide a post without a word to us: the index learns of it later, what was asked is kept nowhere else.
    index = {"posts.body", "postings.lexeme", "document_frequencies.lexeme"}
    assert await places_of(loop.services.pool, "zqhid") <= index
