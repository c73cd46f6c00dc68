"""What people read: every link leads somewhere, every command named exists, the guides name what is on the pages."""

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from eval.__main__ import evaluate
from service.__main__ import COMMANDS, ariane
from service.domain import Lang
from service.moderation.wording import texts
from service.settings import LimitSettings, ModerationSettings, RetentionSettings
from service.store.trials import PER_HOUR

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md")])
GUIDES = {Lang("en"): ROOT / "docs" / "moderators.md", Lang("fr"): ROOT / "docs" / "moderators.fr.md"}
PICTURES = ROOT / "docs" / "pictures"
MAX_PICTURE_BYTES, MAX_PICTURES_BYTES = 60_000, 1_500_000

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?\n(.*?)```|`([^`]+)`", re.DOTALL)
COMMAND = re.compile(r"(?<!-n )\b(ariane|python -m eval) ([a-z][a-z-]*)([^\n|&;]*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def codes(path: Path) -> Iterator[str]:
    for block, inline in CODE.findall(path.read_text(encoding="utf-8")):
        yield (block or inline).replace("\\\n", " ")


def anchors(path: Path) -> set[str]:
    """What a page's headings are linked by, as GitHub makes it of them."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", one) for one in headings]
    kept = [
        "".join(c for c in one.strip().lower() if c in " -_" or unicodedata.category(c)[0] in "LN") for one in plain
    ]
    return {one.replace(" ", "-") for one in kept}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in LINK.findall(text):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def options(command: click.Command) -> set[str]:
    """Those of a command and of all below it."""
    own = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            own |= options(below)
    return own | {"--help", "--version"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_named_exists_with_its_options(page: Path) -> None:
    groups = {"ariane": ariane, "python -m eval": evaluate}
    for code in codes(page):
        for program, name, rest in COMMAND.findall(code):
            group = groups[program]
            for one in (name, *re.findall(r"\|([a-z-]+)", rest if "|" in rest.split(" ")[0] else "")):
                command = group.get_command(click.Context(group), one)
                assert command is not None, code
                assert set(OPTION.findall(rest)) <= options(command), code


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_make_target_named_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {name for code in codes(page) for name in re.findall(r"(?:^|\n)make ([a-z-]+)", code)}
    assert named <= targets


def test_the_page_of_commands_has_every_command() -> None:
    rows = re.findall(
        r"^\| `ariane ([a-z-]+)", (ROOT / "docs" / "commands.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert set(rows) == set(COMMANDS)


@pytest.mark.parametrize("lang", GUIDES)
def test_what_a_guide_has_in_bold_stands_on_the_pages(lang: Lang) -> None:
    shown = {" ".join(text.split()).rstrip(": ") for text in texts()[lang].values()}
    bold = {" ".join(one.split()) for one in re.findall(r"\*\*(.+?)\*\*", GUIDES[lang].read_text(), re.DOTALL)}
    assert len(bold) > 50
    assert bold <= shown


def test_the_guides_go_the_same_way() -> None:
    english, french = (GUIDES[Lang(lang)].read_text(encoding="utf-8") for lang in ("en", "fr"))
    assert set(GUIDES) == set(texts())
    for pattern in (r"^(#+) ", r"pictures/([a-z-]+)\.", r"`(ariane [a-z-]+)", r"^(\||\d\.|- )"):
        assert re.findall(pattern, english, re.MULTILINE) == re.findall(pattern, french, re.MULTILINE), pattern


def test_the_guides_say_the_present_numbers() -> None:
    english, french = (" ".join(GUIDES[Lang(lang)].read_text(encoding="utf-8").split()) for lang in ("en", "fr"))
    limits, kept = LimitSettings(), RetentionSettings()
    member, topic, overall = limits.per_member_per_hour, limits.per_topic_per_hour, limits.per_hour
    assert f"{member} questions of one member in an hour, {topic} in one topic and {overall} in all" in english
    assert f"{member} réponses par heure à un membre, {topic} dans un sujet et {overall} en tout" in french
    assert f"Texts are kept for {kept.trace_days} days." in english
    assert f"Les textes sont gardés {kept.trace_days} jours." in french
    days, most = kept.unanswered_days, kept.unanswered_questions
    assert f"leaves {days} days after it was asked last; {most:,} are kept at most" in english
    assert (
        f"disparaît {days} jours après avoir été posée pour la dernière fois ; on en garde {most // 1000} 000" in french
    )
    assert f"One question at a time, {PER_HOUR} an hour" in english
    assert f"Une question à la fois, {PER_HOUR} par heure" in french
    moderation = ModerationSettings()
    assert (moderation.idle_minutes, moderation.absolute_hours, limits.late_minutes) == (120, 12, 10), "said in words"


def test_every_picture_is_shown_and_small() -> None:
    shown = {
        (page.parent / link).resolve() for page in PAGES for link in LINK.findall(page.read_text(encoding="utf-8"))
    }
    pictures = sorted(PICTURES.iterdir())
    assert set(pictures) <= shown
    assert max(one.stat().st_size for one in pictures) <= MAX_PICTURE_BYTES
    assert sum(one.stat().st_size for one in pictures) <= MAX_PICTURES_BYTES
