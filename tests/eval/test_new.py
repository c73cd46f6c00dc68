"""Making a dataset: natural labels, pooled candidates, drafts to be judged, the manifest and the check of the whole."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st

from eval.commands.new import command
from eval.datasets import load_dataset, read_cases
from eval.datasets.archive import ReadTopic, read_archive
from eval.datasets.labels import Found
from eval.domain import Labels
from eval.new import asked
from eval.new.asked import Wanted, read_questions
from eval.new.check import faults_of
from eval.new.draft import Drafted, draft_yaml
from eval.new.export import preformatted
from eval.new.files import topic_lines, write_found
from eval.new.manifest import write_manifest
from eval.new.natural import accepted_labels, link_labels, linked_posts, site_of
from eval.new.pool import merged, pool_candidates
from service.discourse.cooked import plain_text
from service.domain import ENGLISH, Candidate, EmbeddingProfile
from service.errors import Rejected, Transient
from tests.eval.dataset_files import ASKED, FOUND, write_folder
from tests.fakes.answering import FakeEmbedder, World, candidate
from tests.shared import SHARED, needs_shared
from tests.unit.test_archive import archive, post_json, topic_json

FORUM = site_of("https://Forum.example/talk/")


def english(text: str) -> str:
    return "en"


def everyone(topic_id: int, number: int) -> bool:
    return True


def topic(number: int, *cooked: str, day: int = 1, **changes: Any) -> dict[str, Any]:
    """A topic of these posts, each by another member, begun on this day."""
    at = f"2024-05-{day:02d}T07:08:09Z"
    posts = [
        post_json(n, id=number * 10 + n, topic_id=number, user_id=n, cooked=text, created_at=at)
        for n, text in enumerate(cooked, start=1)
    ]
    return topic_json(id=number, title=f"Title {number}", post_stream={"posts": posts}) | changes


def read(tmp_path: Path, *topics: object) -> list[ReadTopic]:
    return list(read_archive(archive(tmp_path, *topics)))


def golden(found: Sequence[Found]) -> dict[int, list[tuple[int, int | None]]]:
    return {one.topic_id: [(post.topic_id, post.post_number) for post in one.golden] for one in found}


@pytest.mark.parametrize(
    ("cooked", "targets"),
    [
        ('<a href="https://forum.example/talk/t/garlic/12/3">x</a>', [(12, 3)]),
        ('<a href="//forum.example/talk/t/garlic/12?u=zoe">x</a>', [(12, None)]),
        ('<a href="/talk/t/12/3#reply">x</a>', [(12, 3)]),
        ('<a href="/talk/t/12">x</a>', [(12, None)]),
        ('<a href="/talk/t/2024-plans/12">x</a>', [(12, None)]),
        ('<a href="/t/garlic/12">outside the subfolder</a>', []),
        ('<a href="https://other.example/talk/t/garlic/12">x</a>', []),
        ('<a href="https://forum.example.evil.example/talk/t/garlic/12">x</a>', []),
        ('<a href="/talk/t/garlic">x</a><a href="/talk/t/garlic/0">x</a><a>x</a>', []),
        ('<a href="https://[forum.example/talk/t/garlic/12">x</a>', []),
        ("<p>see https://forum.example/talk/t/garlic/12/3.</p>", [(12, 3)]),
        ("<p>see https://forum.example/talk/t/garlic/12/3 there</p>", [(12, 3)]),
        ('<aside class="quote" data-topic="12" data-post="4"><a href="/talk/t/x/99">quoted</a></aside>', [(12, 4)]),
        (
            '<aside class="quote" data-topic="12" data-post="1"><i class="title"><a href="/talk/t/x/12"></a></i>',
            [(12, None)],
        ),
        ('<aside class="quote no-group" data-topic="12" data-post="x">y</aside>', [(12, None)]),
        ('<aside class="quote" data-topic="x" data-post="1">y</aside>', []),
        ('<a href="/talk/t/a/1">x</a><a href="/talk/t/b/2">y</a><a href="/talk/t/a/1">z</a>', [(1, None), (2, None)]),
        (f'<a href="/talk/t/{"a" * 200_000}">x</a><a href="/talk/t/x/{"1" * 200_000}">y</a>', []),
        ("<div>" * 2_000 + '<a href="/talk/t/a/1">x</a>', []),
    ],
)
def test_what_a_post_points_at(cooked: str, targets: list[tuple[int, int | None]]) -> None:
    assert linked_posts(cooked, FORUM) == targets


@given(st.text() | st.from_regex(r'<a href="[/a-z:.\[\]%0-9]{0,30}/t/[a-z0-9/]{0,20}">', fullmatch=True))
def test_any_post_is_looked_through(cooked: str) -> None:
    assert all(topic_id > 0 for topic_id, _ in linked_posts(cooked, site_of("https://forum.example")))


def test_a_link_counts_from_another_member_to_an_older_public_topic(tmp_path: Path) -> None:
    def link(number: int) -> str:
        return f'<a href="/talk/t/x/{number}">x</a>'

    topics = read(
        tmp_path,
        topic(1, "old", day=1),
        topic(2, "asks", link(1), day=2),
        topic(3, "asks", link(4), day=3),
        topic(4, "younger", day=4),
        topic(5, "asks and says " + link(1), "no", day=5),
        topic(6, "asks", link(6) + link(99), day=6),
        topic(7, "asks", '<a href="/talk/t/x/2/2">x</a>' + link(1), day=7),
        topic(8, "asks", "nothing", link(1), day=8),
    )
    assert golden(list(link_labels(topics, everyone, english, FORUM))) == {
        2: [(1, None)],
        7: [(2, 2), (1, None)],
        8: [(1, None)],
    }
    private = {(1, 1), (8, 3), (2, 2)}
    shown = link_labels(topics, lambda t, n: (t, n) not in private, english, FORUM)
    assert golden(list(shown)) == {}


def test_a_member_who_answers_himself_labels_nothing(tmp_path: Path) -> None:
    again = topic(2, "asks", '<a href="/talk/t/x/1">x</a>', day=2)
    again["post_stream"]["posts"][1]["user_id"] = 1
    assert list(link_labels(read(tmp_path, topic(1, "old"), again), everyone, english, FORUM)) == []


def test_accepted_answers_are_found_on_the_post_and_on_the_topic(tmp_path: Path) -> None:
    marked = topic(1, "<p>How\n\nmuch?</p>", "2 l", "3 l")
    marked["post_stream"]["posts"][2]["accepted_answer"] = True
    named = topic(2, "asks", "answers", accepted_answer={"post_number": 2, "username": "ines"})
    own = topic(3, "asks and answers", accepted_answer={"post_number": 1})
    none = topic(4, "asks", "answers", accepted_answer=None)
    topics = read(tmp_path, marked, named, own, none)
    found = list(accepted_labels(topics, everyone, english))
    assert golden(found) == {1: [(1, 3)], 2: [(2, 2)]}
    assert (found[0].title, found[0].text, found[0].lang) == ("Title 1", "How much?", "en")
    assert golden(list(accepted_labels(topics, lambda t, n: (t, n) != (1, 3), english))) == {2: [(2, 2)]}
    assert golden(list(accepted_labels(topics, lambda t, n: (t, n) != (2, 1), english))) == {1: [(1, 3)]}


def test_natural_labels_are_read_back(tmp_path: Path) -> None:
    found = [Found(topic_id=7, title="Ail", text="Quand ?", lang="fr", golden=[{"topic_id": 3}])]  # type: ignore[list-item]
    assert write_found(tmp_path / "links.jsonl", found) == 1
    (case,) = read_cases(load_dataset(tmp_path), Labels.LINKS)
    assert (case.question, case.lang, case.golden[0].post_number) == ("Ail\n\nQuand ?", "fr", None)
    assert write_found(tmp_path / "accepted.jsonl", []) == 0
    assert not (tmp_path / "accepted.jsonl").exists()


def test_an_archive_is_bounded_and_its_faults_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for lines, said in (
        (("{",), "line 1: not JSON"),
        ((topic(1, "x"), "[]"), "line 2: "),
        (("[" * 100_000,), "line 1"),
    ):
        with pytest.raises(Rejected, match=said):
            read(tmp_path, *lines)
    assert read(tmp_path, topic_json(post_stream={}))[0].posts == ()
    monkeypatch.setattr("service.ingest.archive.MAX_LINE_BYTES", 1_000)
    bomb = tmp_path / "topics.jsonl.gz"
    bomb.write_bytes(gzip.compress(b" " * 10_000_000))
    with pytest.raises(Rejected, match="line 1: longer than 1,000 bytes"):
        list(read_archive(bomb))
    bomb.write_bytes(bomb.read_bytes()[:-20])
    monkeypatch.undo()
    with pytest.raises(Rejected, match="can't be read to its end"):
        list(read_archive(bomb))


@given(st.text() | st.builds(lambda *lines: "\n\n".join(lines), st.text(), st.text()))
@example("  indented\n\n\n| a | b |\n")
@example("a < b && c > d &amp; </pre>")
def test_exported_text_is_read_back_as_it_was(text: str) -> None:
    body = plain_text(preformatted(text))
    assert plain_text(preformatted(body)) == body


@given(st.text())
def test_the_text_of_any_post_is_read_back_as_it_was(cooked: str) -> None:
    body = plain_text(cooked)
    assert plain_text(preformatted(body)) == body


def test_archives_of_the_same_topics_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        with topic_lines(tmp_path / name) as write:
            write('{"é": 1}')
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()).decode() == '{"é": 1}\n'


def test_candidates_are_pooled_by_their_best_rank() -> None:
    one, two, three, four = (candidate(n) for n in (1, 2, 3, 4))
    assert merged([[one, two], [two, three], [], [four]]) == (one, two, four, three)


async def test_every_search_gives_candidates_and_an_embedder_that_is_down_is_told() -> None:
    world = World(candidates=[candidate(n) for n in range(1, 9)])
    pooled = await pool_candidates("water tomatoes", ENGLISH, world.stages, depth=3)
    assert [one.post_id for one in pooled.candidates] == [1, 2, 3] and pooled.notes == ()
    world.embedder = FakeEmbedder(down=Transient("away"))
    pooled = await pool_candidates("water tomatoes", ENGLISH, world.stages, depth=3)
    assert len(pooled.candidates) == 3 and pooled.notes == ("embedder_down",)


def read_draft(folder: Path, drafted: list[Drafted]) -> Any:
    text = draft_yaml(drafted, "https://forum.example")
    return load_dataset(write_folder(folder, questions__yml=text))


def test_a_draft_waits_for_its_judge_and_is_a_dataset_then(tmp_path: Path) -> None:
    wanted = Wanted(id="q1", question="How: much?\n# no comment", history=[{"role": "user", "text": "Water?"}])  # type: ignore[list-item]
    nothing = Wanted(id="q2", question="Mongolia?", slice="offtopic")
    dataset = read_draft(tmp_path, [Drafted(wanted, "en", [candidate(1), candidate(2)]), Drafted(nothing, "fr", [])])
    with pytest.raises(Rejected, match=r"1 questions wait for a person to judge them .*: q1; say 2"):
        read_cases(dataset, Labels.QUESTIONS)
    text = dataset.files["questions.yml"].read_text()
    assert "# https://forum.example/t/watering-1/101/1" in text
    judged = text.replace("null}", "2}", 1).replace("null}", "0}")
    first, second = read_cases(load_dataset(write_folder(tmp_path, questions__yml=judged)), Labels.QUESTIONS)
    assert first.question == wanted.question and first.history == (("user", "Water?"),)
    assert [(post.topic_id, post.post_number) for post in first.golden] == [(101, 1)]
    assert (second.lang, second.golden) == ("fr", ())


@given(text=st.text(), title=st.text(), slug=st.text(), question=st.text(min_size=1), note=st.text())
@example(text="x\n- id: evil", title="a\x85b\u2028c", slug="\n", question="\u2028\ufeff", note="\x85")
def test_no_post_breaks_a_draft(
    tmp_path_factory: pytest.TempPathFactory, text: str, title: str, slug: str, question: str, note: str
) -> None:
    found = Candidate(**{**_fields(candidate(1)), "title": title, "slug": slug, "body": text})
    drafted = Drafted(Wanted(id="q1", question=question, note=note), "en", [found])
    folder = tmp_path_factory.mktemp("draft")
    judged = draft_yaml([drafted], "https://forum.example").replace("null}", "2}")
    (case,) = read_cases(load_dataset(write_folder(folder, questions__yml=judged)), Labels.QUESTIONS)
    assert case.question == question and len(case.golden) == 1


def _fields(one: Candidate) -> dict[str, Any]:
    return {name: getattr(one, name) for name in Candidate.__dataclass_fields__}


def test_questions_come_as_lines_or_as_a_list(tmp_path: Path) -> None:
    lines = tmp_path / "asked.txt"
    lines.write_text("\ufeffHow much water?\r\n\n  Et le basilic ?  \n", encoding="utf-8")
    assert [(one.id, one.question, one.slice) for one in read_questions(lines)] == [
        ("q001", "How much water?", "paraphrase"),
        ("q002", "Et le basilic ?", "paraphrase"),
    ]
    listed = tmp_path / "asked.yml"
    listed.write_text("- question: and then?\n  standalone: What then?\n  slice: followup\n- {id: x, question: y}\n")
    first, second = read_questions(listed)
    assert (first.id, first.asked, first.slice, second.id) == ("q001", "What then?", "followup", "x")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.txt", " \n", "no question in it"),
        ("a.yml", "- {id: x, question: y}\n- {id: x, question: z}", "item 2 (x): the id 'x' is there twice"),
        ("a.yml", "- {question: y, golden: []}", "item 1, golden: "),
        ("a.txt", "one\ntwo\nthree", "line 3: more than 2 questions"),
    ],
)
def test_a_bad_list_of_questions_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, said: str
) -> None:
    monkeypatch.setattr(asked, "MAX_QUESTIONS", 2)
    (tmp_path / name).write_text(text)
    with pytest.raises(Rejected) as caught:
        read_questions(tmp_path / name)
    assert said in str(caught.value)


def test_a_manifest_keeps_what_people_wrote(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "plot", questions__yml=[ASKED])
    assert write_manifest(folder).name == "plot"
    write_manifest(folder, name="allotment", languages=["fr"], licence="à nous")
    write_folder(folder, links__jsonl=[FOUND])
    written = write_manifest(folder)
    assert (written.name, written.languages, written.licence) == ("allotment", ["fr"], "à nous")
    dataset = load_dataset(folder)
    assert dataset.warnings == () and set(dataset.files) == {"questions.yml", "links.jsonl"}


def test_a_label_for_a_post_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    right = ASKED | {"golden": [{"topic": 7, "posts": [2], "grade": 2}]}
    wrong = ASKED | {"id": "q2", "golden": [{"topic": 7, "posts": [9], "grade": 2}]}
    folder = write_folder(tmp_path, questions__yml=[right, wrong], links__jsonl=[FOUND], gate__yml="x", site__json="[]")
    archive(folder, topic_json())
    found = list(faults_of(load_dataset(folder), []))
    assert len(found) == 4
    assert found[0] == f"{folder / 'gate.yml'}: expected a list, found something else"
    assert "not a Discourse site.json" in found[1]
    assert found[2] == f"{folder}, questions q2: post 9 of topic 7 is not in topics.jsonl"
    assert found[3] == f"{folder}, links links-51: topic 44 is not in topics.jsonl"


UNIT = np.eye(2, 3, dtype=np.float16)
POSTS = {"profile": np.array("m"), "topic_id": np.array([1, 2]), "post_number": np.array([1, 1])}


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        (POSTS | {"embedding": UNIT}, None),
        (POSTS | {"embedding": UNIT, "profile": np.array("another's")}, None),
        (POSTS | {"embedding": np.eye(2, 4, dtype=np.float16)}, "in shape (2, 4), expected floats (n, 3)"),
        (POSTS | {"embedding": 2 * UNIT}, "2 vectors are not finite and of unit length"),
        (POSTS | {"embedding": UNIT[0]}, "in shape (3,)"),
        (POSTS | {"embedding": np.array(1.0)}, "in shape ()"),
        (POSTS, "it lacks one of"),
        (None, "not a vectors file"),
    ],
)
def test_bad_vectors_are_a_fault(tmp_path: Path, arrays: dict[str, Any] | None, said: str | None) -> None:
    path = tmp_path / "vectors.npz"
    if arrays is None:
        path.write_bytes(b"PK")
    else:
        np.savez(path, **arrays)
    found = list(faults_of(load_dataset(tmp_path), [EmbeddingProfile("m", 1, 1, 3, 9)]))
    assert len(found) == (said is not None)
    assert all(one.startswith(str(path)) and (said or "") in one for one in found)


def test_the_command_checks_a_folder_and_writes_its_manifest(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "plot", questions__yml=[ASKED])
    archive(folder, topic_json(id=109, post_stream={"posts": [post_json(n, topic_id=109) for n in (2, 3)]}))
    result = CliRunner().invoke(command, ["--manifest", str(folder)])
    assert isinstance(result.exception, Rejected) and "questions q1: topic 12 is not in" in str(result.exception)
    assert load_dataset(folder).warnings == ()
    write_folder(folder, questions__yml=[ASKED | {"golden": ASKED["golden"][:1]}], vectors__npz=b"none")
    result = CliRunner().invoke(command, ["--manifest", str(folder)])
    assert isinstance(result.exception, Rejected) and "not a vectors file" in str(result.exception)
    (folder / "vectors.npz").unlink()
    result = CliRunner().invoke(command, ["--manifest", str(folder)])
    assert result.exception is None and result.stdout == f"{folder}\n"


def test_the_command_writes_over_nothing(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "plot", questions__yml=[ASKED])
    result = CliRunner().invoke(command, ["--from-forum", "--out", str(folder)])
    assert isinstance(result.exception, Rejected) and "questions.yml is there already" in str(result.exception)
    for out, said in (
        ("/", "no folder for a dataset"),
        (str(folder / "questions.yml"), "no folder for a dataset"),
        (str(tmp_path / ("x" * 300)), "can't be written: File name too long"),
    ):
        result = CliRunner().invoke(command, ["--from-forum", "--out", out])
        assert isinstance(result.exception, Rejected) and said in str(result.exception)
    for arguments in ([], ["--from-forum", "--manifest", str(folder)]):
        assert CliRunner().invoke(command, arguments).exit_code == 2


@needs_shared
def test_the_links_of_a_real_forum_are_found() -> None:
    """The development data's labels were made by other code from the same archive."""
    folder = SHARED / "data" / "urho3d"
    given_links = {
        line["topic_id"]: {(post["topic_id"], post["post_number"]) for post in line["golden"]}
        for line in map(json.loads, (folder / "links.jsonl").read_text().splitlines())
    }
    site = site_of("https://discourse.member0008.io")
    found = golden(list(link_labels(read_archive(folder / "topics.jsonl.gz"), everyone, english, site)))
    same = [topic_id for topic_id, posts in given_links.items() if set(found.get(topic_id, [])) == posts]
    assert len(same) >= 0.95 * len(given_links) and len(found) <= 1.05 * len(given_links)
