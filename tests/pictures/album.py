"""Which pictures there are: the page of each, what is done on it first, and which part of it is shown."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from playwright.async_api import Page

from service.domain import Lang
from service.moderation.wording import Words
from tests.pictures.scene import MODERATOR, Scene

Prepare = Callable[[Page, Words], Awaitable[None]]
HEIGHT = 900
PATIENCE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Picture:
    """A page by its address, and of it what stands from the top of `first` to the bottom of `last`."""

    name: str
    url: str
    first: str = "header.top"
    last: str = "main"
    prepare: Prepare | None = None
    height: int = HEIGHT
    """Most of it that is shown, in pixels."""


def album(scene: Scene, lang: Lang) -> tuple[Picture, ...]:
    """The pictures of one language, in the order in which they are taken: the first ones before signing in."""
    words = Words(lang)
    answered = f"{scene.pages}/answers/{scene.answered[lang]}"
    held = f"{scene.pages}/answers/{scene.shadowed[lang]}"
    return (
        Picture("answer", f"{scene.forum}/t/x/{scene.topics[lang]}", "div.heading", "article.by-bot"),
        Picture("sign-in", f"{scene.pages}/sign-in"),
        Picture("home", f"{scene.pages}/", prepare=sign_in, height=1500),
        Picture("answers", f"{scene.pages}/answers", height=1100),
        Picture("one-answer", answered, last="h2#decide", height=1100),
        Picture("found", answered, first="h2#candidates", height=560),
        Picture("written", answered, first=f"h2:text-is('{words('answers.draft')}')"),
        Picture("decide", held, first="h2#decide", height=900),
        Picture("unanswered", f"{scene.pages}/unanswered"),
        Picture("try", f"{scene.pages}/try", prepare=partial(ask, text=TRIED[lang])),
        Picture("gate", f"{scene.pages}/gate", last="section[aria-labelledby=test]", prepare=partial(test, lang=lang)),
        Picture(
            "rule", f"{scene.pages}/gate", "h3#add", "section[aria-labelledby=add]", partial(rule, lang=lang), 1500
        ),
        Picture("switches", f"{scene.pages}/flags", last="[aria-labelledby=flag-private_messages]", height=1200),
        Picture("metrics", f"{scene.pages}/metrics", last="[aria-labelledby=figure-zones]", height=1200),
        Picture("scores", f"{scene.pages}/metrics", *2 * ("[aria-labelledby=figure-logits]",)),
    )


TRIED = {
    "en": "Should I kill the black crocodiles with orange spots on my broad beans?",
    "fr": "Comment bouturer du basilic dans un verre d’eau ?",
}
DECLINED = {
    "en": "Could you write my biology homework on photosynthesis?",
    "fr": "Tu peux écrire mon exposé de biologie sur la photosynthèse ?",
}
RULE = {
    "en": {
        "id": "plant-labels-en",
        "verb": "write|compose|make",
        "object": "(plant|plants|pot) labels?",
        "within": "4",
        "exceptions": "how|which ink",
        "positives": "Write twenty plant labels for me.\nMake me some pot labels\nCompose funny plant labels",
        "lookalikes": "How do you write plant labels that last?\nWhich ink do I write plant labels with?\n"
        "My plant labels fade in the sun",
    },
    "fr": {
        "id": "etiquettes-fr",
        "verb": "ecri*|redige*|fais",
        "object": "etiquettes?",
        "within": "4",
        "exceptions": "comment|quelle encre",
        "positives": "Écris-moi vingt étiquettes de plants\nFais des étiquettes pour mes pots\n"
        "Rédige mes étiquettes de semis",
        "lookalikes": "Comment écrire des étiquettes qui tiennent ?\nQuelle encre pour écrire mes étiquettes ?\n"
        "Mes étiquettes pâlissent au soleil",
    },
}
"""The rule that the guides walk through."""


async def sign_in(page: Page, words: Words) -> None:
    """By the forum, which has no passwords here; wait until the first page says that all is well."""
    await page.get_by_role("link", name=words("sign_in.button")).click()
    await page.get_by_role("link", name=MODERATOR, exact=True).click()
    await page.get_by_role("navigation", name=words("common.nav")).wait_for()
    for _ in range(PATIENCE_SECONDS):
        if not await page.locator(".cells .bad").count():
            return
        await page.wait_for_timeout(1_000)
        await page.reload()
    raise AssertionError("the scene's worker does not tell of itself")


async def ask(page: Page, words: Words, *, text: str) -> None:
    """Try a question, and wait for what comes of it."""
    await page.get_by_label(words("try.question")).fill(text)
    await page.get_by_role("button", name=words("try.ask")).click()
    await page.get_by_role("heading", name=words("try.final")).wait_for()


async def test(page: Page, words: Words, *, lang: str) -> None:
    """Let the gate decide on a message."""
    await page.get_by_label(words("gate.message"), exact=True).fill(DECLINED[lang])
    await page.get_by_role("button", name=words("gate.do_test"), exact=True).click()
    await page.get_by_text(words("gate.would_decline")).wait_for()


async def rule(page: Page, words: Words, *, lang: str) -> None:
    """Fill in a rule and try it."""
    await page.select_option("#rule-language", lang)
    for field, value in RULE[lang].items():
        await page.fill(f"#rule-{field}", value)
    await page.get_by_role("button", name=words("gate.do_try"), exact=True).click()
    await page.get_by_text(words("gate.holds")).wait_for()
