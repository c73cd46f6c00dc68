"""The report: whole for every command and language, hostile text inert, faults told, the right words for figures."""

import re
import string
from collections.abc import Callable
from functools import cache
from math import nan
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser

from eval.commands.report import LANGUAGES, command
from eval.datasets import load_dataset, read_cases
from eval.domain import Interval, Labels
from eval.measures import Grain, first_ranks
from eval.report.previous import last_before
from eval.report.render import block, code, seen
from eval.report.wording import Numbers, wordings
from eval.report.worst import worst_found
from eval.runs import Run
from eval.systems import SYSTEMS
from service.answer.templates import variants
from tests.eval import report_runs
from tests.eval.report_runs import (
    MAKERS,
    QUESTIONS,
    a_dataset,
    answer_run,
    begun,
    found,
    gate_run,
    retrieve_run,
    safety_run,
)

SECTIONS = ["verdict", "results", "times", "changes", "worst", "made", "legend"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def dataset(home: Path) -> Path:
    return a_dataset(home / "forum")


@pytest.fixture(scope="module")
def runs(home: Path, dataset: Path) -> dict[str, Run]:
    """Of each command the later one of two."""
    for make in MAKERS.values():
        make(home, dataset)
    return {name: make(home, dataset, day=1) for name, make in MAKERS.items()}


Page = tuple[LexborHTMLParser, str, int]
"""A run's page, its Markdown, and the size of the page in bytes."""
Pages = Callable[[str, str], Page]
"""The page of a command's run in a language."""


@pytest.fixture(scope="module")
def pages(home: Path, runs: dict[str, Run], tmp_path_factory: pytest.TempPathFactory) -> Pages:
    @cache
    def page(name: str, lang: str) -> Page:
        out = tmp_path_factory.mktemp("out")
        return *written(home, out, runs[name].record.id, "--lang", lang), (out / "report.html").stat().st_size

    return page


def report(home: Path, *arguments: object) -> Result:
    return CliRunner(env={"ARIANE_HOME": str(home)}).invoke(command, [str(one) for one in arguments])


def written(home: Path, out: Path, *arguments: object) -> tuple[LexborHTMLParser, str]:
    done = report(home, *arguments, "--out", out)
    assert done.exit_code == 0, done.exception or done.output
    assert done.stdout.split() == [str(out / "report.html"), str(out / "report.md")]
    return LexborHTMLParser((out / "report.html").read_text()), (out / "report.md").read_text()


def text_of(page: LexborHTMLParser, selector: str) -> str:
    node = page.css_first(selector)
    assert node is not None, selector
    return str(node.text())


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", MAKERS)
def test_every_command_has_a_whole_page_that_needs_nothing_else(
    pages: Pages, runs: dict[str, Run], name: str, lang: str
) -> None:
    page, told, size = pages(name, lang)
    assert page.root is not None
    assert page.root.attributes["lang"] == lang
    ids = [str(node.attributes["id"]) for node in page.css("[id]")]
    assert len(ids) == len(set(ids))
    assert [one for one in ids if one in SECTIONS] == SECTIONS
    named = [str(node.attributes[key]) for key in ("aria-labelledby",) for node in page.css(f"[{key}]")]
    assert set(named) <= set(ids)
    assert {str(link.attributes["href"]) for link in page.css("a")} <= {f"#{one}" for one in ids}
    assert page.css("script, iframe, object, form, img, base, [src], [onclick], [onerror], [style*=url]") == []
    assert [link.attributes["href"] for link in page.css("link")] == ["data:,"]
    assert len(page.css("h1")) == 1
    assert all(table.css_first("caption") is not None for table in page.css("table"))
    assert len(page.css(".lead strong")) == len(runs[name].record.labels)
    assert 0 < len(page.css("details.trace")) <= 30
    assert runs[name].record.dataset.checksum in page.root.text()
    assert runs[name].record.dataset.checksum in told
    assert size < 1_000_000


@pytest.mark.parametrize("name", MAKERS)
def test_foreign_text_is_only_text(pages: Pages, name: str) -> None:
    page, told, _ = pages(name, "en")
    style = page.css("style")
    assert len(style) == 1 and "display:none" not in style[0].text()
    shown = "".join(node.text() for node in page.css(".foreign"))
    assert '<script>document.title="owned"</script>' in shown and "@everyone" in shown
    assert not any(mark in text for mark in "‮\x07" for text in (page.html or "", told))
    tokens = MarkdownIt("gfm-like").parse(told)
    kinds = {child.type for token in tokens for child in (token.children or [token])}
    assert not kinds & {"link_open", "image", "html_inline", "html_block"}
    outside = "".join(
        child.content for token in tokens for child in (token.children or []) if child.type != "code_inline"
    )
    assert "@everyone" not in outside and "elsewhere" not in outside


def test_the_verdict_says_what_was_measured(pages: Pages, runs: dict[str, Run]) -> None:
    page, told, _ = pages("retrieve", "en")
    [one] = [
        one
        for one in runs["retrieve"].measures()
        if (one.labels, one.system, one.slice, one.measure) == ("questions", "reranked", "all", "topic Hit@5")
    ]
    value, low, high = (f"{100 * end:.0f}" for end in (one.interval.value, one.interval.low, one.interval.high))
    assert text_of(page, ".lead strong") == value
    assert f"between {low} and {high}" in text_of(page, ".lead")
    assert f"among the first five for {value}.** Likely between {low} and {high}." in told
    assert text_of(page, "section[aria-labelledby=verdict]").count("With the thresholds as they are") == 1
    assert len(page.css("figure")) == 2, "the links' scores can't be learned from: the questions alone have plots"
    assert "topics that members linked: no plot" in text_of(page, "section[aria-labelledby=scores]")


def test_times_slices_and_the_system_in_use_are_shown(pages: Pages) -> None:
    page, _, _ = pages("retrieve", "en")
    times = [node.text(strip=True) for node in page.css("section[aria-labelledby=times] .what")]
    assert times[:3] == ["searching keywords", "reranking", "in all"]
    served = page.css("section[aria-labelledby=results] tr.served th")
    assert served and all(node.text() == "all parts, reranked in use" for node in served)
    results = text_of(page, "section[aria-labelledby=results]")
    assert "English (40)" in results and "French (20)" in results


def test_a_system_is_in_use_only_under_the_configuration_of_the_run(
    home: Path, runs: dict[str, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The channels are the same, and the reranker gets other lists: its figures are not those of what is served."""
    monkeypatch.setenv("ARIANE_RETRIEVAL__CANDIDATES", "12")
    page, told = written(home, tmp_path, runs["retrieve"].folder)
    served = page.css("section[aria-labelledby=results] tr.served th")
    assert served and all(node.text().strip() == "all parts, reranked" for node in served)
    assert "About one of the systems that were tried: all parts, reranked" in told


def test_the_last_run_alike_is_found_and_compared_with(
    home: Path, pages: Pages, runs: dict[str, Run], tmp_path: Path
) -> None:
    for name, run in runs.items():
        before = last_before(run)
        assert before is not None and before.record.command == name and before.record.started < run.record.started
        assert last_before(before) is None
        page, told, _ = pages(name, "en")
        assert before.record.id in text_of(page, "section[aria-labelledby=changes]")
        assert f"`{before.record.id}`" in told
    first = last_before(runs["retrieve"])
    assert first is not None
    page, _ = written(home, tmp_path, first.folder)
    assert "No earlier run" in text_of(page, "section[aria-labelledby=changes]")


def test_a_difference_is_told_in_words(tmp_path: Path, dataset: Path) -> None:
    worse, better = retrieve_run(tmp_path, dataset, late=5), retrieve_run(tmp_path, dataset, day=2)
    page, _ = written(tmp_path, tmp_path / "up", better.folder)
    assert "Topic in 5: better, from" in text_of(page, "section[aria-labelledby=changes]")
    page, _ = written(tmp_path, tmp_path / "down", worse.folder, "--against", better.folder)
    assert "Topic in 5: worse, from" in text_of(page, "section[aria-labelledby=changes]")
    same = retrieve_run(tmp_path, dataset, day=3)
    page, _ = written(tmp_path, tmp_path / "same", same.folder)
    assert "unchanged" in text_of(page, "section[aria-labelledby=changes]")


def test_the_worst_come_first(dataset: Path) -> None:
    cases = read_cases(load_dataset(dataset), Labels.QUESTIONS)
    lists = {
        name: {case.id: found(case, at, luck=luck, zoned=name == "reranked") for at, case in enumerate(cases)}
        for name, luck in (("bm25", 2), ("reranked", 1))
    }
    worst = worst_found(cases, lists, "reranked")
    ids = [case.id for case in worst]
    first = first_ranks(cases, lists["reranked"], Grain.TOPIC)
    lost = [name for name in ids if name in first and first[name] is None]
    assert set(lost) == {name for name, rank in first.items() if rank is None}
    late = [rank for name in ids if (rank := first.get(name))]
    assert late == sorted(late, reverse=True) and late[-1] == 2
    assert ids.index(lost[-1]) < ids.index(next(name for name in ids if first.get(name)))
    right = [f"q{n}" for n in range(QUESTIONS) if n % 5 and n % 7 == 1]
    assert not set(ids) & set(right), "what is found first isn't bad"
    silent = [f"q{n}" for n in range(QUESTIONS, 80) if lists["reranked"][f"q{n}"].zone == "abstain"]
    assert silent and not set(ids) & set(silent), "nor is abstaining where the forum has no answer"


def test_a_run_that_can_not_be_told_is_refused_in_one_line(home: Path, dataset: Path, tmp_path: Path) -> None:
    unfinished = begun(tmp_path, load_dataset(dataset), "gate", {"gate": {}}, ["gate"])
    torn = gate_run(tmp_path, dataset)
    (torn.folder / "gate.gate.jsonl").unlink()
    unmeasured = answer_run(tmp_path, dataset)
    (unmeasured.folder / "measures.json").write_text("{}")
    garbled = answer_run(tmp_path, dataset)
    (garbled.folder / "questions.pipeline.jsonl").write_text('{"case_id": 3}\n')
    lost = gate_run(tmp_path, dataset, day=3)
    for arguments, said in (
        ([unfinished.folder], "this run is not finished: go on with it by `python -m eval gate"),
        ([torn.folder], "broken: the lines of gate for gate are missing"),
        ([unmeasured.folder], "measures.json"),
        ([garbled.folder], "questions.pipeline.jsonl, line 1"),
        ([tmp_path / "nowhere"], "no run"),
        ([lost.folder, "--dataset", tmp_path / "nothing"], "no such folder"),
        ([lost.folder, "--against", unfinished.folder], "not finished"),
        ([lost.folder, "--out", lost.folder / "run.json" / "x"], "can't be written"),
    ):
        done = report(tmp_path, *arguments)
        assert done.exit_code != 0 and done.stdout == ""
        assert said in str(done.exception) + done.stderr, arguments


def test_a_dataset_changed_since_is_said(tmp_path: Path) -> None:
    folder = a_dataset(tmp_path / "forum")
    run = gate_run(tmp_path, folder)
    (folder / "links.jsonl").unlink()
    page, told = written(tmp_path, tmp_path, run.folder)
    assert "was changed since" in text_of(page, ".note") and "was changed since" in told


def test_messages_of_two_datasets_are_compared_on_what_both_have(tmp_path: Path) -> None:
    folder = a_dataset(tmp_path / "forum")
    gate_run(tmp_path, folder)
    messages = yaml.safe_load((folder / "gate.yml").read_text())
    new = [{**messages[0], "id": "new"}, {**messages[10], "id": "newer"}]
    (folder / "gate.yml").write_text(yaml.safe_dump([*messages[2:], *new]))
    again = gate_run(tmp_path, folder, day=1)
    page, told = written(tmp_path, tmp_path, again.folder)
    table = page.css("section[aria-labelledby=changes] table")[0]
    counted = [row.css("td")[0].text() for row in table.css("tbody tr")]
    assert counted == ["8", "10", "18"], "of the messages to decline, of the others, of all"
    assert "compared on the messages that both have" in text_of(page, "section[aria-labelledby=changes] .note")
    assert "compared on the messages that both have" in told


def test_a_run_of_a_part_is_compared_on_that_part(tmp_path: Path, dataset: Path) -> None:
    part = safety_run(tmp_path, dataset, limit=8)
    whole = safety_run(tmp_path, dataset, day=1)
    page, _ = written(tmp_path, tmp_path / "part", part.folder)
    shown = [node.text() for node in page.css("details.trace summary code")]
    assert "e1" in shown and "e3" not in shown, "what it was not asked did not go badly"
    page, _ = written(tmp_path, tmp_path / "whole", whole.folder)
    assert "limited to 8 messages: compared on these" in text_of(page, "section[aria-labelledby=changes] .note")


MARKS = st.text(st.sampled_from("`~|<>[]()!@:/\\*_#-.& \n\r\t\x00\u2028\u202eabwh"), max_size=40)


@given(st.one_of(MARKS, st.text(max_size=60)))
def test_foreign_text_stays_in_its_code_and_block(text: str) -> None:
    md = MarkdownIt("gfm-like")
    [opening, inline, closing] = md.parse(f"before {code(text)} after")
    assert (opening.type, closing.type) == ("paragraph_open", "paragraph_close")
    assert [one.type for one in inline.children or []] == ["text", "code_inline", "text"]
    cells = [one for one in md.parse(f"| a | b |\n|---|---|\n| {code(text)} | c |") if one.type == "td_open"]
    assert len(cells) == 2
    [fence, after, *_] = md.parse(f"{block(text)}\n\nafter")
    assert (fence.type, after.type) == ("fence", "paragraph_open")
    assert fence.content.rstrip("\n") == seen(text).rstrip("\n")


def test_both_languages_say_everything() -> None:
    words = wordings()
    assert tuple(words) == LANGUAGES
    one, other = words.values()
    assert list(one.texts) == list(other.texts)
    assert list(one.measures) == list(other.measures)
    assert {group: list(names) for group, names in one.names.items()} == {
        group: list(names) for group, names in other.names.items()
    }
    assert [word.of for word in one.legend] == [word.of for word in other.legend]
    for key, text in one.texts.items():
        assert fields(text) == fields(other.texts[key]), key
    for lang in LANGUAGES:
        file = Path(__file__).parents[2] / "eval" / "report" / "wording" / f"{lang}.yml"
        yaml.load(file.read_text(), NoDuplicates)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_system_has_its_words(lang: str) -> None:
    named = wordings()[lang].names["systems"]
    others = {"pipeline", "gate", *(f"{one}.gate-{way}" for one in variants() for way in ("off", "on"))}
    assert set(named) == {*SYSTEMS, *others}
    assert set(report_runs.SYSTEMS) <= set(SYSTEMS)
    assert len(set(named.values())) == len(named)


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


class NoDuplicates(yaml.SafeLoader):
    """Refuses a key that is there twice, which YAML would take the last of."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        keys = [self.construct_object(key, deep=deep) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"twice in {node.start_mark}"
        return super().construct_mapping(node, deep)


def test_every_text_is_used() -> None:
    folder = Path(__file__).parents[2] / "eval" / "report"
    code = "".join(
        path.read_text() for path in [*folder.rglob("*.py"), *folder.rglob("page.*"), *folder.rglob("parts.*")]
    )
    made = re.compile(r"intro_|lead_|more_|table_|user$|bot$")
    unused = [key for key in wordings()["en"].texts if f'"{key}"' not in code and f"'{key}'" not in code]
    assert [key for key in unused if not made.match(key)] == []


def test_numbers_are_written_as_each_language_does() -> None:
    english, french = Numbers("en"), Numbers("fr")
    assert (english.share(0.4167, 1), french.share(0.4167, 1), french.share(nan)) == ("41.7", "41,7", "–")
    assert (english.between(Interval(0.5, 0.25, 0.754)), english.between(Interval(0.5, nan, nan))) == ("25–75", "")
    assert (english.signed(-0.0811), french.signed(0.0)) == ("−8.1", "+0,0")
    assert (english.chance(0.0001), french.chance(0.0125), english.chance(nan)) == ("< 0.001", "0,013", "–")
    assert (english.ms(0.1234), french.ms(12.34), english.ms(1234.5)) == ("0.123", "12,3", "1\u202f234")
