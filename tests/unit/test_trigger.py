"""Who gets an answer: one row a rule, and one for each thing other bots got wrong."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.answer.courtesy import Courtesy, courtesy
from service.answer.trigger import Bot, Kind, Trigger, place_refusal, post_refusal, read_trigger
from service.domain import CategoryId, Post, PostId, PostType, SkipReason, Topic, TopicId, UserId

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
BOT = Bot("Ariane", frozenset({"system", "discobot", "recapbot"}), UserId(77))
MENTION = '<a class="mention" href="/u/ariane">@Ariane</a>'
BOB = '<a class="mention" href="/u/bob">@bob</a>'
QUOTED = f'<aside class="quote"><div class="title">x:</div><blockquote><p>{MENTION} hi</p></blockquote></aside>'
TOPIC = Topic(TopicId(5), "Watering tomatoes in pots", "watering", CategoryId(2), "regular")


def post(html: str = f"<p>{MENTION} how much water?</p>", **changes: Any) -> Post:
    """A member's public post number 3, mentioning us."""
    asked = Post(
        id=PostId(9),
        topic_id=TOPIC.id,
        post_number=3,
        post_type=PostType.REGULAR,
        user_id=UserId(12),
        username="maelle",
        cooked=html,
        created_at=NOW,
        updated_at=NOW,
        archetype="regular",
        category_id=CategoryId(2),
    )
    return replace(asked, **changes)


def refusal(asked: Post, *, replies_to_us: bool = False) -> SkipReason | None:
    return post_refusal(asked, BOT, replies_to_us=replies_to_us)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"html": "<p>how much water?</p>"}, SkipReason.NOT_ADDRESSED),
        ({"html": f"<p>{BOB} how much?</p>"}, SkipReason.NOT_ADDRESSED),
        ({"html": "<p>ariane@example.org, ariane</p>"}, SkipReason.NOT_ADDRESSED),
        ({"html": f"{QUOTED}<p>I agree</p>"}, SkipReason.MENTION_IN_QUOTE),
        ({"html": f"{QUOTED}<p>{MENTION} and you?</p>"}, None),
        ({"html": "<pre><code>@ariane help</code></pre>"}, SkipReason.MENTION_IN_CODE),
        ({"html": f'<aside class="onebox">{MENTION}</aside>'}, SkipReason.MENTION_IN_ONEBOX),
        ({"html": f'<div class="elided">{MENTION}</div>'}, SkipReason.MENTION_IN_ELIDED),
        ({"user_id": UserId(77)}, SkipReason.OWN_POST),
        ({"user_id": UserId(78), "username": "ARIANE"}, SkipReason.OWN_POST),
        ({"username": "RecapBot"}, SkipReason.KNOWN_BOT),
        ({"user_id": None}, SkipReason.SYSTEM_USER),
        ({"user_id": UserId(0)}, SkipReason.SYSTEM_USER),
        ({"user_id": UserId(-1), "username": "gone"}, SkipReason.SYSTEM_USER),
        ({"post_type": PostType.WHISPER}, SkipReason.WHISPER),
        ({"post_type": PostType.SMALL_ACTION}, SkipReason.SMALL_ACTION),
        ({"post_type": PostType.MODERATOR_ACTION}, SkipReason.MODERATOR_ACTION),
        ({"post_type": 9}, SkipReason.MODERATOR_ACTION),
        ({"deleted": True}, SkipReason.POST_GONE),
        ({"user_deleted": True}, SkipReason.POST_GONE),
        ({"hidden": True}, SkipReason.POST_HIDDEN),
        ({"archetype": "private_message", "category_id": None}, SkipReason.PRIVATE),
        ({"archetype": "something_new"}, SkipReason.PRIVATE),
        ({"category_id": None}, SkipReason.PRIVATE),
        ({"archetype": "banner"}, None),
        ({"archetype": None, "category_id": None}, None),  # a REST read: the topic will say
        ({"html": ""}, SkipReason.PRIVATE),
        ({"html": "", "post_type": PostType.WHISPER}, SkipReason.WHISPER),
        ({"html": "<p>hello</p>", "username": "RecapBot"}, SkipReason.NOT_ADDRESSED),
    ],
)
def test_a_post_alone(changes: dict[str, Any], reason: SkipReason | None) -> None:
    assert refusal(post(**changes)) is reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"html": "<p>and in winter?</p>"}, None),
        ({"html": f"{QUOTED}<p>and in winter?</p>"}, None),
        ({"html": f"<p>{BOB} what do you think?</p>"}, SkipReason.NOT_ADDRESSED),  # two humans talking
        ({"html": f"<p>{BOB} and {MENTION}, what do you think?</p>"}, None),
        ({"html": f"<p>as {BOB} said, what about winter?</p>"}, None),
        ({"html": "<p>again</p>", "username": "ariane"}, SkipReason.OWN_POST),
        ({"html": "<p>again</p>", "username": "recapbot"}, SkipReason.KNOWN_BOT),
    ],
)
def test_a_reply_to_us_needs_no_mention(changes: dict[str, Any], reason: SkipReason | None) -> None:
    assert refusal(post(**changes), replies_to_us=True) is reason


def test_names_are_compared_composed_and_folded() -> None:
    bot = Bot("Zo\u00e9", frozenset(), None)
    own = post('<p><a class="mention" href="/u/zo%C3%A9">@Zoé</a> hi</p>', username="ZOE\u0301")
    assert post_refusal(own, bot, replies_to_us=False) is SkipReason.OWN_POST


@pytest.mark.parametrize(
    ("topic", "staged", "reason"),
    [
        (TOPIC, False, None),
        (TOPIC, True, SkipReason.STAGED_USER),
        (None, False, SkipReason.TOPIC_GONE),
        (replace(TOPIC, deleted=True), False, SkipReason.TOPIC_GONE),
        (replace(TOPIC, closed=True), False, SkipReason.TOPIC_CLOSED),
        (replace(TOPIC, archived=True), False, SkipReason.TOPIC_CLOSED),
        (replace(TOPIC, archetype="private_message"), False, SkipReason.PRIVATE),
        (replace(TOPIC, category_id=None), False, SkipReason.PRIVATE),
        (replace(TOPIC, archetype="banner"), False, None),
    ],
)
def test_a_place(topic: Topic | None, staged: bool, reason: SkipReason | None) -> None:
    assert place_refusal(topic, staged=staged) is reason


@pytest.mark.parametrize(
    ("html", "number", "told"),
    [
        (f"<p>{MENTION} how much water?</p>", 3, Trigger(Kind.QUESTION, "how much water?")),
        (f"<p>{MENTION}</p>", 3, Trigger(Kind.HELP, "")),
        (f"{QUOTED}<p>{MENTION} ?</p>", 3, Trigger(Kind.HELP, "")),
        (f"<p>Bonjour {MENTION} !</p>", 3, Trigger(Kind.HELP, "")),
        (f"<p>merci {MENTION} !</p>", 3, SkipReason.THANKS),
        (f"<p>{MENTION}</p>", 1, Trigger(Kind.QUESTION, TOPIC.title)),
        (f"<p>Merci d’avance {MENTION}</p>", 1, Trigger(Kind.QUESTION, TOPIC.title)),
        (f"<p>{MENTION} mine dry out</p>", 1, Trigger(Kind.QUESTION, f"{TOPIC.title}\nmine dry out")),
    ],
)
def test_what_is_asked(html: str, number: int, told: Trigger | SkipReason) -> None:
    assert read_trigger(post(html, post_number=number), TOPIC, BOT, max_chars=500) == told


def test_a_long_question_is_cut_and_says_so() -> None:
    trigger = read_trigger(post(f"<p>{MENTION} {'tomates ' * 100}</p>"), TOPIC, BOT, max_chars=60)
    assert trigger == Trigger(Kind.QUESTION, " ".join(["tomates"] * 7), cut=True)


THANKS = """
merci !| Merci beaucoup| thanks a lot| thanks a lot @bob| Thank you so much for your help!| 👍| :+1:| thx :)| ok| <3| ty
| Merci à toutes et à tous !| great, that helped, thanks| Super, merci pour ta réponse| Merci, c’est parfait !
| Cheers :wave:t2:| MERCI ❤️| Thank you, that worked.| Merci, ça a marché !
"""
BARE = "|?|…|hello|Bonjour !|hi there!|s’il te plaît|@bob|help"
QUESTIONS = """
merci, mais ça ne marche pas| thanks, and what about pots?| ça marche ?| tomates| is it a bot?| pH| aide au semis
| 水やり| no thanks to mildew| merci mais encore ?| 3
"""


@pytest.mark.parametrize("text", [text.strip() for text in THANKS.split("|")])
def test_thanks(text: str) -> None:
    assert courtesy(text) is Courtesy.THANKS


@pytest.mark.parametrize("text", BARE.split("|"))
def test_bare(text: str) -> None:
    assert courtesy(text) is Courtesy.BARE


@pytest.mark.parametrize("text", [*(text.strip() for text in QUESTIONS.split("|")), "thanks " * 20])
def test_questions(text: str) -> None:
    assert courtesy(text) is Courtesy.ASKS


@given(st.text(), st.booleans())
def test_any_cooked_text_is_read(html: str, replies: bool) -> None:
    refusal(post(html), replies_to_us=replies)
    read = read_trigger(post(html), TOPIC, BOT, max_chars=50)
    assert isinstance(read, SkipReason) or len(read.text) <= 50
