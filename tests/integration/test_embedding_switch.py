"""Re-embedding online: two profiles are filled side by side, one switch says which answers, the other can then go."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from service.__main__ import ariane
from service.answer.activation import State
from service.answer.ports import AnsweringMode
from service.answer.retrieve import retrieve
from service.domain import ENGLISH, EmbeddingProfile, EvaluationRun, Mode, Post, PostId, Question, RunKind, Trace
from service.errors import Rejected, Transient
from service.ingest.eligibility import IndexRules
from service.ingest.index import Indexer, refresh_post
from service.ingest.share import Unshared, embed_part
from service.settings import Settings
from service.store.corpus import CorpusStore
from service.store.evaluations import EvaluationStore
from service.store.flags import FlagStore
from service.store.inbox import InboxStore
from service.store.pool import Connection, Pool
from service.store.profiles import ProfileStore
from service.store.search import SearchStore
from service.store.trials import Asked, TrialStore
from service.wiring.activation import activated_flags, present_activation, switch_on, turn
from service.wiring.configuration import configuration, embedding_profile
from service.wiring.embedders import Embedders
from service.wiring.services import Services, open_services
from service.wiring.work import work_of
from tests.fakes.embedder import HashEmbedder
from tests.integration.store_data import PUBLIC, TOPIC, indexed, later, post, rows

OWN = {
    "embedders": {
        "old": {"model": "toy", "strategy": 100, "version": 1, "dimensions": 8, "window_tokens": 64},
        "new": {"model": "toy", "strategy": 101, "version": 1, "dimensions": 12, "window_tokens": 64},
    }
}
OLD, NEW = "toy/100.1", "toy/101.1"
POSTS = 20


@pytest.fixture
def settings(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Of a process that embeds under both; the environment says the same to commands."""
    own = tmp_path / "own.yml"
    own.write_text(yaml.safe_dump(OWN))
    values = {
        "DATABASE__URL": database_url,
        "MODELS__PROFILES_FILE": str(own),
        "MODELS__EMBEDDER__PROFILE": "old",
        "MODELS__OTHER_EMBEDDER__PROFILE": "new",
        "MODELS__INDEX_KIND": "hnsw_halfvec",
        "RETRIEVAL__CHANNELS": '["vector", "topic-mean"]',
    }
    for name, value in values.items():
        monkeypatch.setenv(f"ARIANE_{name}", value)
    return Settings()


@pytest.fixture
async def corpus(pool: Pool) -> CorpusStore:
    store = CorpusStore(pool)
    await store.put_categories([PUBLIC])
    await store.put_topics([TOPIC])
    await store.put_posts([indexed(post(n), f"body {n}") for n in range(1, POSTS + 1)])
    return store


@pytest.fixture
def old(settings: Settings) -> HashEmbedder:
    return HashEmbedder(embedding_profile(settings.models))


@pytest.fixture
def new(settings: Settings) -> HashEmbedder:
    """Its vectors have other dimensions: whoever searched them by the old one's would get an error."""
    return HashEmbedder(embedding_profile(settings.models, NEW))


@pytest.fixture
async def services(settings: Settings, old: HashEmbedder, new: HashEmbedder) -> AsyncIterator[Services]:
    async with open_services(settings, "worker") as opened:
        embedders = Embedders([old, new], FlagStore(opened.pool))
        yield replace(opened, embedder=old, embedders=embedders, stages=replace(opened.stages, embedder=old))


async def switched(pool: Pool, settings: Settings, value: str) -> None:
    await turn(pool, settings, "embedding_profile", value, by="ines", reason="better figures")


async def built(pool: Pool) -> None:
    for name in (OLD, NEW):
        await ProfileStore(pool).build_index(name)


async def test_one_switch_changes_whose_vectors_answer_while_questions_come(
    corpus: CorpusStore, pool: Pool, settings: Settings, services: Services
) -> None:
    worker = work_of(services, asyncio.Event())
    assert [await worker.embed_pending(), await worker.embed_pending()] == [2 * POSTS, 0]
    await built(pool)
    asked: list[tuple[str, str]] = []
    phase = "before"

    async def member() -> None:
        while phase != "over":
            began, trace = phase, Trace()
            stages = await services.embedders.applied(services.stages)
            question = Question(f"body {len(asked)}", ENGLISH)
            found = await retrieve(question, stages.embedder, stages.search, settings.retrieval, trace)
            assert (trace.mode, trace.notes) == (Mode.RERANKED, [])
            assert found
            asked.append((began, stages.embedder.profile.name))

    async def until_asked(count: int) -> None:
        wanted = len(asked) + count
        while len(asked) < wanted and not any(one.done() for one in members):
            await asyncio.sleep(0.005)

    members = [asyncio.create_task(member()) for _ in range(4)]
    try:
        for now, then, value in (("before", "to new", NEW), ("new", "to old", OLD), ("old", "to new again", NEW)):
            phase = now
            await until_asked(12)
            phase = then
            await switched(pool, settings, value)
        phase = "new again"
        await until_asked(12)
    finally:
        phase = "over"
        await asyncio.gather(*members)
    answered = {began: {name for at, name in asked if at == began} for began, _ in asked}
    assert {began: answered[began] for began in ("before", "new", "old", "new again")} == {
        "before": {OLD},
        "new": {NEW},
        "old": {OLD},
        "new again": {NEW},
    }
    changes = await FlagStore(pool).changes(9)
    assert [(one.name, one.old_value, one.new_value, one.changed_by) for one in changes] == [
        ("embedding_profile", OLD, NEW, "ines"),
        ("embedding_profile", NEW, OLD, "ines"),
        ("embedding_profile", None, NEW, "ines"),
    ]


async def test_what_a_worker_answers_is_searched_by_what_the_switch_says(
    corpus: CorpusStore, pool: Pool, settings: Settings, services: Services, old: HashEmbedder, new: HashEmbedder
) -> None:
    await work_of(services, asyncio.Event()).embed_pending()
    await built(pool)
    await switch_on(pool, settings, by="ines", reason="a test", override=True)
    trials, now = TrialStore(pool), datetime.now(UTC)

    async def nothing(conn: Connection, trial_id: int) -> None:
        pass

    async def asked() -> tuple[bool, bool]:
        old.embedded.clear()
        new.embedded.clear()
        trial_id = await trials.ask(Asked("Which body 7?", "en"), by="ines", now=now, follow=nothing)
        await work_of(services, asyncio.Event()).try_question(trial_id)
        tried = await trials.one(trial_id, "ines", now=now)
        assert tried is not None and tried.result is not None
        assert tried.result.trace.mode is Mode.RERANKED
        return bool(old.embedded), bool(new.embedded)

    assert await asked() == (True, False)
    await switched(pool, settings, NEW)
    assert await asked() == (False, True)


async def test_the_switch_is_refused_until_the_profile_can_answer(
    corpus: CorpusStore, pool: Pool, settings: Settings, old: HashEmbedder, new: HashEmbedder
) -> None:
    async def refused(value: str, words: str, status: int = 409) -> None:
        with pytest.raises(Rejected, match=words) as caught:
            await switched(pool, settings, value)
        assert caught.value.status == status
        assert (await FlagStore(pool).read()).embedding_profile == ""

    await embed_part(corpus, old, Unshared())
    await refused("toy/102.1", rf"no embedder of toy/102\.1 is configured, but of {OLD}, {NEW}: set models\.other")
    await refused("new", "default, or MODEL/STRATEGY.VERSION", 422)
    await refused(NEW, r"0\.0 % of the posts have a vector of toy/101\.1, .* is 95: let `ariane worker`")
    await embed_part(corpus, new, Unshared())
    await refused(NEW, rf"the index of {NEW} isn't built: `ariane profiles activate {NEW}`")
    await ProfileStore(pool).build_index(NEW)
    await switched(pool, settings, NEW)
    assert (await FlagStore(pool).read()).embedding_profile == NEW
    await rows(pool, "DELETE FROM embeddings WHERE profile_id = 1 RETURNING 1")
    with pytest.raises(Rejected, match=r"0\.0 % of the posts have a vector of toy/100\.1"):
        await switched(pool, settings, "default")


async def command(*words: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, ariane, words, standalone_mode=False)


async def test_commands_activate_and_drop_but_not_what_answers(
    corpus: CorpusStore, pool: Pool, settings: Settings, old: HashEmbedder, new: HashEmbedder
) -> None:
    for embedder in (old, new):
        await embed_part(corpus, embedder, Unshared())
    kept = await command("profiles", "drop", OLD)
    assert isinstance(kept.exception, Rejected)
    assert f"the profile '{OLD}' answers: activate another first" in str(kept.exception)
    activated = await command("profiles", "activate", NEW, "--why", "finds the ends of posts")
    assert activated.exception is None
    assert f"{NEW} answers" in activated.stderr
    assert "this configuration was never tested" in activated.stderr
    [change] = await FlagStore(pool).changes(9)
    assert (change.new_value, change.reason) == (NEW, "finds the ends of posts")
    listed = (await command("profiles")).stdout
    assert [line.split()[-1] for line in listed.splitlines()[1:]] == ["built)", "active"]
    assert NEW in (await command("flags")).stdout
    assert isinstance((await command("profiles", "drop", NEW)).exception, Rejected)
    assert (await command("profiles", "drop", OLD)).exception is None
    assert [one.profile.name for one in await ProfileStore(pool).list_profiles()] == [NEW]


async def test_another_profile_is_another_configuration(
    corpus: CorpusStore, pool: Pool, settings: Settings, old: HashEmbedder, new: HashEmbedder
) -> None:
    for embedder in (old, new):
        await embed_part(corpus, embedder, Unshared())
    await built(pool)

    async def decide(answering: str) -> None:
        signature = configuration(settings, answering)
        await EvaluationStore(pool).record_run(EvaluationRun(signature, RunKind.SIGNED_OFF, True, "ines", "it is good"))
        await switch_on(pool, settings, by="ines", reason="tested")

    flags = activated_flags(pool, settings)
    await FlagStore(pool).set("answering", "on", by="ines", reason="")
    await decide("")
    assert (await flags.read()).answering is AnsweringMode.ON
    await switched(pool, settings, NEW)
    changed = await present_activation(pool, settings)
    assert changed.state is State.CHANGED
    assert "embedder.profile.strategy 100 -> 101" in changed.differences
    assert (await flags.read()).answering is AnsweringMode.SHADOW
    with pytest.raises(Rejected, match="no passed test"):
        await switch_on(pool, settings, by="ines", reason="untested")
    await decide(NEW)
    assert (await flags.read()).answering is AnsweringMode.ON
    # A process that has the new one alone answers under the same signature.
    alone = settings.model_copy(deep=True, update={"models": _alone(settings)})
    assert (await activated_flags(pool, alone).read()).answering is AnsweringMode.ON


def _alone(settings: Settings) -> Any:
    models = settings.models
    return models.model_copy(
        update={
            "embedder": models.embedder.model_copy(update={"profile": "new"}),
            "other_embedder": models.other_embedder.model_copy(update={"profile": ""}),
        }
    )


class OnePost:
    """A forum that shows one post to everyone."""

    def __init__(self, shown: Post) -> None:
        self.shown = shown

    async def public_post(self, post_id: PostId) -> Post | None:
        return self.shown

    async def public_thread(self, topic_id: object) -> None:
        return None

    async def public_categories(self) -> list[Any]:
        return []


@pytest.mark.parametrize("down", [OLD, NEW])
async def test_a_new_post_gets_a_vector_of_each_and_of_the_others_where_one_is_down(
    corpus: CorpusStore, pool: Pool, old: HashEmbedder, new: HashEmbedder, down: str
) -> None:
    forum = OnePost(post(50, cooked="<p>What is new?</p>", updated_at=later(5)))
    at = Indexer(corpus, forum, InboxStore(pool), old, IndexRules(frozenset(), index_banners=False), [new])
    [ill, well] = [old, new] if down == OLD else [new, old]
    ill.down = Transient("gone")
    with pytest.raises(Transient):  # its job is tried again
        await refresh_post(PostId(150), at)
    query = "SELECT strategy FROM embeddings JOIN embedding_profiles USING (profile_id) WHERE post_id = 150 ORDER BY 1"
    assert await rows(pool, query) == [(well.profile.strategy,)]
    ill.down = None
    await refresh_post(PostId(150), at)
    assert await rows(pool, query) == [(100,), (101,)]
    assert len(well.embedded) == 1


async def test_what_waits_is_embedded_under_the_others_where_one_is_down(
    corpus: CorpusStore, services: Services, old: HashEmbedder, new: HashEmbedder
) -> None:
    old.down = Transient("gone")
    with pytest.raises(Transient):
        await work_of(services, asyncio.Event()).embed_pending()
    assert [(await corpus.census(one.profile)).left_to_embed for one in (old, new)] == [POSTS, 0]


async def test_a_switch_to_what_is_not_configured_here_leaves_the_first(
    corpus: CorpusStore, pool: Pool, old: HashEmbedder, capsys: pytest.CaptureFixture[str]
) -> None:
    await embed_part(corpus, old, Unshared())
    await ProfileStore(pool).activate(OLD)
    other = HashEmbedder(EmbeddingProfile("else", 1, 1, dimensions=8, window_tokens=64))
    assert await Embedders([other], FlagStore(pool)).answering() is other
    said = capsys.readouterr()
    assert "embedding_profile_not_configured" in said.out + said.err
    assert await Embedders([other, old], FlagStore(pool)).answering() is old
    assert await SearchStore(pool).nearest_posts(old.profile, await old.embed_query("body 1"), 3)
