"""The page and the API of the switches: the same rules as the command line's, every change with who and why."""

from collections.abc import AsyncIterator

import pytest

from service.answer.ports import AnsweringMode
from service.domain import EvaluationRun, RunKind
from service.store.corpus import CorpusStore
from service.store.evaluations import EvaluationStore
from service.store.flags import FlagStore
from service.store.pool import Pool
from service.wiring.configuration import configuration
from tests.integration.store_data import PRIVATE, PUBLIC
from tests.moderators import ADMIN, SETTINGS, Pages, open_pages, visible


@pytest.fixture
async def pages(pool: Pool) -> AsyncIterator[Pages]:
    async with open_pages(pool) as opened:
        await opened.sign_in()
        yield opened


async def tested(pool: Pool) -> None:
    await EvaluationStore(pool).record_run(
        EvaluationRun(configuration(SETTINGS), RunKind.SIGNED_OFF, True, by="ines", reason="it answers well")
    )


async def test_everything_is_off_at_first(pages: Pages) -> None:
    html = await pages.text("/flags")
    assert html.count('<span class="mark ">off</span>') == 4
    assert "Nothing was changed yet: everything is off." in html
    assert "éteint" in await pages.text("/flags", lang="fr")


async def test_a_change_counts_at_once_and_is_kept_with_who_and_why(pages: Pages, pool: Pool) -> None:
    sent = await pages.post("/flags", {"name": "answering", "value": "shadow", "why": " a <first> look "})
    assert (sent.status_code, sent.headers["location"]) == (303, "/moderation/flags?done=1")
    assert (await FlagStore(pool).read()).answering is AnsweringMode.SHADOW
    (change,) = await FlagStore(pool).changes(9)
    assert (change.changed_by, change.changed_by_user_id, change.reason) == ("mia", 6, "a <first> look")
    html = await pages.text("/flags?done=1")
    assert "a &lt;first&gt; look" in html
    assert "Changed." in html
    assert "mia (6) Answers – in shadow" in visible(html)


@pytest.mark.parametrize(
    ("fields", "status", "says"),
    [
        ({"name": "answering", "value": "on", "why": " "}, 422, "a reason is kept"),
        ({"name": "answering", "value": "on", "why": "x" * 501}, 422, "a reason is kept"),
        ({"name": "answering", "value": "maybe", "why": "x"}, 422, "off, shadow, on"),
        ({"name": "<b>", "value": "on", "why": "x"}, 422, "&lt;b&gt;"),
        ({"category": "x", "value": "on", "why": "x"}, 422, "no flag"),
        ({"group": "a b", "value": "1", "why": "x"}, 422, "no flag"),
        ({"name": "posts_pipeline", "value": "on", "why": "x"}, 409, "has no passed test"),
    ],
)
async def test_what_may_not_be_is_refused_and_says_why(
    pages: Pages, pool: Pool, fields: dict[str, str], status: int, says: str
) -> None:
    answer = await pages.post("/flags", fields)
    assert answer.status_code == status
    assert says in answer.text
    assert "This was not changed." in answer.text
    assert await FlagStore(pool).changes(9) == []
    if "name" in fields:
        assert (await pages.post_json("/api/flags", fields)).status_code == status


async def test_the_pipeline_goes_on_under_the_rules_of_the_command_line(pages: Pages, pool: Pool) -> None:
    await tested(pool)
    turn = {"name": "posts_pipeline", "value": "on", "why": "good figures"}
    refused = await pages.post("/flags", turn)
    assert refused.status_code == 409
    assert "0.0 % of the posts" in refused.text  # tested, but nothing is indexed


async def test_answering_on_without_the_gate_is_warned_about(pages: Pages) -> None:
    await pages.post("/flags", {"name": "answering", "value": "on", "why": "go"})
    assert "the input gate is off" in await pages.text("/flags")
    await pages.post("/flags", {"name": "input_gate", "value": "on", "why": "go"})
    assert "the input gate is off" not in await pages.text("/flags")


async def test_categories_and_groups_are_set_and_shown_by_name(pages: Pages, pool: Pool) -> None:
    await CorpusStore(pool).put_categories([PUBLIC])
    await pages.post("/flags", {"category": str(PUBLIC.id), "value": "shadow", "why": "a trial"})
    await pages.post("/flags", {"category": str(PUBLIC.id), "what": "per_hour", "value": "20", "why": "busy"})
    await pages.post("/flags", {"group": "trust_level_0", "value": "2", "why": "new"})
    shown = visible(await pages.text("/flags"))
    assert f"Answers in the category {PUBLIC.name} in shadow" in shown
    assert f"Answers an hour in the category {PUBLIC.name} 20" in shown
    assert "Answers an hour to each member of trust_level_0 2" in shown
    await pages.post("/flags", {"group": "trust_level_0", "value": "", "why": "old"})
    flags = await FlagStore(pool).read()
    assert (flags.categories, flags.category_per_hour, flags.group_per_hour) == (
        {PUBLIC.id: AnsweringMode.SHADOW},
        {PUBLIC.id: 20},
        {},
    )


async def test_a_closed_category_has_no_name_for_a_moderator(pages: Pages, pool: Pool) -> None:
    await CorpusStore(pool).put_categories([PUBLIC, PRIVATE])
    await FlagStore(pool).set("category:2", "off", by="boss", reason="theirs")
    html = await pages.text("/flags")
    assert "Garden" in html
    assert "Staff" not in html
    assert "Staff" not in (await pages.post("/flags", {"name": "x", "value": "x", "why": "x"})).text
    await pages.sign_in(ADMIN)
    assert "Staff" in await pages.text("/flags")


async def test_the_api_says_and_turns_the_same(pages: Pages, pool: Pool) -> None:
    await pages.sign_in(ADMIN)
    first = (await pages.client.get("/api/flags")).json()
    assert first["flags"] == {
        "answering": "off",
        "posts_pipeline": "off",
        "input_gate": "off",
        "private_messages": "off",
    }
    assert first["activation"]["state"] == "off"
    turned = await pages.post_json("/api/flags", {"name": "category:3", "value": "off", "why": "quiet there"})
    assert turned.json()["flags"]["category:3"] == "off"
    (change,) = (await pages.client.get("/api/flags/changes?limit=5")).json()["changes"]
    assert (change["by"], change["user_id"], change["from"], change["to"]) == ("boss", 1, None, "off")


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        ('{"name": 1}', "application/json", 422),
        ("[]", "application/json", 400),
        ("{", "application/json", 400),
        ("[" * 100_000, "application/json", 400),
        ("name=answering&value=on&why=x", "application/x-www-form-urlencoded", 415),
        ("name=answering", "text/plain", 415),
    ],
)
async def test_the_api_reads_json_objects_only(pages: Pages, body: str, kind: str, status: int) -> None:
    assert pages.session is not None
    headers = {"Origin": pages.desk.site.origin, "X-CSRF-Token": pages.session.csrf, "Content-Type": kind}
    answer = await pages.client.post("/api/flags", content=body, headers=headers)
    assert answer.status_code == status
    assert answer.json()["error"]


async def test_the_api_needs_the_token_too(pages: Pages, pool: Pool) -> None:
    body = {"name": "answering", "value": "on", "why": "x"}
    answer = await pages.client.post("/api/flags", json=body, headers={"Origin": pages.desk.site.origin})
    assert answer.status_code == 403
    assert await FlagStore(pool).changes(9) == []
