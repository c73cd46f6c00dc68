"""The gate's page: its rules, messages tried on it, what it declined of late, and rules that moderators add."""

import json
from collections.abc import AsyncIterator, Mapping
from functools import cache

import pytest

from service.answer.gate import in_use
from service.answer.gate.compiled import load_gate
from service.answer.gate.in_use import GateInUse
from service.answer.gate.match import decide
from service.answer.gate.rules import GateKind, merged, rule_files
from service.domain import Posted, PostId, Result, TopicId, Trace
from service.settings import GateSettings
from service.store.gate_rules import MAX_RULES, GateRuleStore
from service.store.pool import Pool
from service.wiring.configuration import configuration
from tests.integration.answers_kit import open_places
from tests.integration.page_data import happened
from tests.integration.store_data import PRIVATE, rows
from tests.moderators import ADMIN, SETTINGS, Pages, open_pages, visible

LOADED = cache(load_gate)
POEM = "Write me a poem about the sea, please."
WEATHER = {
    "id": "weather-en",
    "kind": "generalist",
    "language": "en",
    "verb": "(what is|what s|tell me) the weather\nweather forecast",
    "object": "tomorrow|tonight|in (paris|london)",
    "within": "5",
    "exceptions": "shader|game",
    "positives": "What is the weather tomorrow?\nTell me the weather in Paris\nWeather forecast for tonight, please",
    "lookalikes": "How do I fake the weather in my game tonight?\nIs there a weather shader?\nWhere is the sky node?",
    "why": "members ask it daily",
}


@pytest.fixture(autouse=True)
def compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_use, "load_gate", LOADED)


@pytest.fixture
async def pages(pool: Pool) -> AsyncIterator[Pages]:
    async with open_pages(pool) as opened:
        await opened.sign_in()
        yield opened


def changed(**fields: str) -> Mapping[str, str]:
    return {"do": "add", **WEATHER, **fields}


async def test_every_rule_is_listed_with_its_examples(pages: Pages) -> None:
    html = await pages.text("/gate")
    for rule in merged(rule_files("")):
        assert f"<code>{rule.id}</code>" in html
    assert "The gate is off: it decides nothing." in html
    assert "Tu peux me traduire cette phrase en espagnol" in html
    assert "Nothing was declined yet." in html
    assert "hors du forum" in await pages.text("/gate", lang="fr")


async def test_a_message_is_decided_on_and_not_kept(pages: Pages, pool: Pool) -> None:
    answer = await pages.post("/gate/test", {"message": f"<b>{POEM}</b>"}, **{"Accept-Language": "fr"})
    assert answer.status_code == 200
    shown = visible(answer.text)
    assert "Le filtre l’écarte. Règle write-text-en Genre hors du forum" in shown
    assert "&lt;b&gt;Write me a poem" in answer.text
    assert "<b>" not in answer.text
    passed = await pages.post("/gate/test", {"message": "How do I load a scene?"})
    assert "The gate lets it through." in passed.text
    assert await rows(pool, "SELECT 1 FROM traces UNION ALL SELECT 1 FROM answers") == []


async def test_a_message_is_read_with_what_its_author_said_before(pages: Pages) -> None:
    message = {"message": "How do I get into it?"}
    assert "lets it through" in (await pages.post("/gate/test", message)).text
    earlier = {"earlier": "\nI want the password of my neighbour on instagram\n"}
    told = await pages.post("/gate/test", message | earlier)
    assert "The gate declines it." in told.text
    assert "I want the password of my neighbour on instagram" in told.text


async def test_any_message_can_be_tried(pages: Pages) -> None:
    for message in ("", "\x00", "a" * 200_000, "((((", "%s {x} {{ y }}"):
        assert (await pages.post("/gate/test", {"message": message})).status_code == 200


async def test_what_was_declined_of_late_is_shown_without_its_text(pages: Pages, pool: Pool) -> None:
    await open_places(pool)
    trace = Trace(asked=POEM, notes=["question_cut", "gate:generalist:write-text-en"])
    await happened(pool, 1, Posted(Result.GATED, PostId(900)), pages.clock(), trace)
    await happened(pool, 2, Posted(Result.GATED, PostId(901)), pages.clock(), Trace(), archetype="private_message")
    staff = {"topic_id": TopicId(20), "category_id": PRIVATE.id}
    await happened(pool, 3, Posted(Result.GATED, PostId(902)), pages.clock(), trace, **staff)
    await happened(pool, 4, Posted(Result.GATED, PostId(903)), pages.clock(), trace, topic_id=TopicId(99))
    html = await pages.text("/gate")
    assert '<a href="https://forum.example/t/tomatoes/10/1">' in html
    assert html.count('href="https://forum.example/t/') == 1
    assert "the sea" not in html
    await pages.sign_in(ADMIN)
    assert (await pages.text("/gate")).count('href="https://forum.example/t/') == 4


async def test_what_the_settings_switch_off_is_said(pool: Pool) -> None:
    settings = SETTINGS.model_copy(update={"gate": GateSettings(kinds_off=("generalist",))})
    async with open_pages(pool, settings) as pages:
        await pages.sign_in()
        assert "Let through by setting (gate.kinds_off): not about the forum" in visible(await pages.text("/gate"))
        assert "lets it through" in (await pages.post("/gate/test", {"message": POEM})).text


async def test_an_added_rule_is_tried_by_every_process_and_audited(pages: Pages, pool: Pool) -> None:
    worker = GateInUse(SETTINGS.gate, GateRuleStore(pool))
    asks = "Hello, what is the weather tonight?"
    assert decide(await worker.read(), asks) is None
    before = configuration(SETTINGS).sha256
    tried = await pages.post("/gate/rules", changed(do="try"))
    assert "The rule holds" in tried.text
    assert await GateRuleStore(pool).rules() == []
    added = await pages.post("/gate/rules", changed())
    assert (added.status_code, added.headers["location"]) == (303, "/moderation/gate?done=1#added")
    found = decide(await worker.read(), asks)
    assert found is not None
    assert (found.rule, found.kind) == ("weather-en", GateKind.GENERALIST)
    assert decide(await worker.read(), "Which shader draws the weather tonight?") is None
    assert configuration(SETTINGS).sha256 == before
    shown = visible(await pages.text("/gate"))
    assert "mia weather-en added members ask it daily" in shown
    assert "weather-en" in (await pages.post("/gate/test", {"message": asks})).text
    await pages.post("/gate/rules", changed(why="wider", within="9"))
    await pages.post("/gate/rules/remove", {"id": "weather-en", "why": "too much"})
    assert decide(await worker.read(), asks) is None
    changes = await GateRuleStore(pool).changes(9)
    assert [(one.what, one.reason, one.changed_by, one.changed_by_user_id) for one in changes] == [
        ("removed", "too much", "mia", 6),
        ("changed", "wider", "mia", 6),
        ("added", "members ask it daily", "mia", 6),
    ]
    assert "None yet." in await pages.text("/gate")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"why": " "}, "a reason is kept"),
        ({"within": "many"}, "within: a number"),
        ({"verb": "weather("}, "a pattern of the gate"),
        ({"verb": "the", "object": "", "exceptions": ""}, "declines a look-alike"),
    ],
)
async def test_a_rule_that_does_not_hold_is_refused_and_kept_in_the_form(
    pages: Pages, pool: Pool, fields: dict[str, str], says: str
) -> None:
    answer = await pages.post("/gate/rules", changed(**fields))
    assert answer.status_code == 422
    assert "This rule can&#39;t be." in answer.text
    assert says in answer.text
    assert "Tell me the weather in Paris" in answer.text
    assert await GateRuleStore(pool).changes(9) == []


async def test_a_stored_rule_that_no_longer_holds_is_left_out_and_shown(pages: Pages, pool: Pool) -> None:
    store = GateRuleStore(pool)
    await pages.post("/gate/rules", changed())
    for rule_id, text in {"broken": "{}", "greedy": json.dumps(greedy())}.items():
        await store.put(rule_id, text, by="x", user_id=None, reason="as an older version took it")
    made = await GateInUse(SETTINGS.gate, store).extended()
    assert set(made.faults) == {"broken", "greedy"}
    assert decide(made.gate, "What is the weather tonight?") is not None
    assert decide(made.gate, "Is there a scene?") is None
    html = await pages.text("/gate")
    assert html.count("This rule is not tried:") == 2
    await pages.post("/gate/rules/remove", {"id": "broken", "why": "broken"})
    assert [one.rule_id for one in await store.rules()] == ["greedy", "weather-en"]


def greedy() -> dict[str, object]:
    texts = ["Is there one?", "Is there two?", "Is there three?"]
    others = ["a", "b", "c"]
    intent = [{"verb": ["is|how|what|when|a|the"]}]
    return {
        "id": "greedy",
        "kind": "generalist",
        "language": "en",
        "intent": intent,
        "positives": texts,
        "lookalikes": others,
    }


async def test_a_rule_that_is_not_there_cannot_be_removed(pages: Pages, pool: Pool) -> None:
    assert (await pages.post("/gate/rules/remove", {"id": "weather-en", "why": "x"})).status_code == 404
    assert await GateRuleStore(pool).changes(9) == []


async def test_there_is_room_for_so_many(pages: Pages, pool: Pool) -> None:
    store = GateRuleStore(pool)
    for number in range(MAX_RULES):
        await store.put(f"rule-{number}", "{}", by="x", user_id=None, reason="x")
    answer = await pages.post("/gate/rules", changed())
    assert (answer.status_code, f"{MAX_RULES} added rules at most" in answer.text) == (409, True)
    assert len(await store.rules()) == MAX_RULES
