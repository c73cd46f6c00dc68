"""Moderators' corrections become labelled questions of a dataset, beside those it has."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from eval.datasets import load_dataset, read_cases
from eval.domain import Labels
from eval.new.corrections import FILE, HEAD, write_corrections
from service.domain import PostId
from service.store.checked_questions import CheckedQuestion

OWN = "# judged by hand\n- {id: q1, slice: paraphrase, question: how deep, golden: [{topic: 1, grade: 2}]}"
ONE = CheckedQuestion(PostId(140), "paraphrase", "en", "why do tomatoes crack", [(10, [3, 5]), (12, [1])], "missed: #1")
NONE = CheckedQuestion(PostId(141), "offtopic", "fr", "quelle heure est-il ?", [], "hors sujet")


def test_they_are_read_as_cases(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(OWN, encoding="utf-8")
    assert write_corrections(tmp_path, [ONE, NONE]) == 2
    cases = {case.id: case for case in read_cases(load_dataset(tmp_path), Labels.QUESTIONS)}
    assert list(cases) == ["q1", "corrected-140", "corrected-141"]
    golden = {(one.topic_id, one.post_number, one.grade) for one in cases["corrected-140"].golden}
    assert golden == {(10, 3, 2), (10, 5, 2), (12, 1, 2)}
    assert not cases["corrected-141"].answerable


def test_written_again_they_take_the_place_of_the_earlier_ones(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(OWN, encoding="utf-8")
    write_corrections(tmp_path, [ONE, NONE])
    write_corrections(tmp_path, [NONE])
    text = (tmp_path / FILE).read_text(encoding="utf-8")
    assert (text.startswith(OWN), text.count(HEAD), "corrected-140" in text) == (True, 1, False)
    write_corrections(tmp_path, [])
    assert (tmp_path / FILE).read_text(encoding="utf-8") == f"{OWN}\n"


def test_without_corrections_there_is_no_file(tmp_path: Path) -> None:
    assert write_corrections(tmp_path / "new", []) == 0
    assert not (tmp_path / "new").exists()


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=60).filter(str.strip))
def test_any_question_comes_back_word_for_word(question: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        one = CheckedQuestion(PostId(1), "paraphrase", "en", " ".join(question.split()), [(1, [1])], question)
        write_corrections(Path(folder), [one])
        [case] = read_cases(load_dataset(Path(folder)), Labels.QUESTIONS)
        assert case.question == one.question
