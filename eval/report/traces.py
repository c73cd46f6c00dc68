"""Traces of questions: what was asked, what was found or said, and what would have answered."""

from collections.abc import Iterable, Mapping, Sequence

from eval.domain import Answered, Case, Retrieved
from eval.measures import Grain, first_ranks, outcome
from eval.measures.answers import ANSWERED_WRONG, FAILED
from eval.report.content import Place, Said, Trace
from eval.report.posts import EXCERPT_CHARS, Key, Told, shortened
from eval.report.worst import Found

LISTED = 10
"""Posts of a list that a trace shows."""
ANSWER_CHARS = 4_000


def keys_of(cases: Iterable[Case], found: Found, system: str, answered: Mapping[str, Answered]) -> set[Key]:
    """The posts that the traces of these cases name."""
    keys: set[Key] = set()
    for case in cases:
        keys |= {(golden.topic_id, golden.post_number) for golden in case.golden}
        if system in found and case.id in found[system]:
            keys |= {(hit.topic_id, hit.post_number) for hit in found[system][case.id].hits[:LISTED]}
        if case.id in answered:
            keys |= {(source.topic_id, source.post_number) for source in answered[case.id].sources}
    return keys


def found_trace(case: Case, found: Found, system: str, told: Mapping[Key, Told]) -> Trace:
    """What a system listed for a case."""
    ranks = {name: first_ranks([case], its, Grain.TOPIC).get(case.id) for name, its in found.items()}
    rank, one = ranks[system], found[system].get(case.id)
    best = min((other for name, other in ranks.items() if other and name != system), default=None)
    if not case.answerable:
        why = "why_uncalled_for"
    elif rank:
        why = "why_late"
    else:
        why = "why_found_elsewhere" if best else "why_not_found"
    others = next((name for name, other in ranks.items() if name != system and best and other == best), "")
    grades = _grades(case)
    places = [
        Place(
            hit.topic_id,
            hit.post_number,
            *_words(told, hit.topic_id, hit.post_number),
            rank=at,
            grade=_grade(grades, hit.topic_id, hit.post_number),
            score=hit.score,
            logit=_at(one.logits, at),
            cosine=_at(one.cosines, at),
        )
        for at, hit in enumerate(one.hits[:LISTED] if one else (), start=1)
        if one
    ]
    return Trace(
        id=case.id,
        labels=case.labels,
        system=system,
        slice=case.slice,
        lang=case.lang,
        why=why,
        values={"rank": rank or 0, "best": best or 0, "other": others},
        question=case.question,
        history=case.history,
        standalone=case.standalone,
        zone=one.zone if one else "",
        mode=one.mode if one else "",
        queries=one.queries if one else (),
        golden=_goldens(case, told, _post_ranks(one)),
        found=tuple(places),
    )


def answer_trace(case: Case, system: str, answered: Mapping[str, Answered], told: Mapping[Key, Told]) -> Trace:
    """What the pipeline said to a case, and the sources it was shown."""
    one = answered.get(case.id)
    ended = outcome(case, one)
    grades = _grades(case)
    sources = one.sources if one else ()
    if ended == ANSWERED_WRONG:
        why = "why_answered_wrong" if case.answerable else "why_answered_unanswerable"
    else:
        why = "why_failed" if ended == FAILED else "why_abstained_wrong"
    places = tuple(
        Place(
            source.topic_id,
            source.post_number,
            _words(told, source.topic_id, source.post_number)[0],
            shortened(source.excerpt, EXCERPT_CHARS),
            rank=source.n,
            grade=_grade(grades, source.topic_id, source.post_number),
            cited=source.cited,
        )
        for source in sources
    )
    return Trace(
        id=case.id,
        labels=case.labels,
        system=system,
        slice=case.slice,
        lang=case.lang,
        why=why,
        question=case.question,
        history=case.history,
        standalone=case.standalone,
        zone=one.zone if one else "",
        mode=one.mode if one else "",
        golden=_goldens(case, told, {(place.topic_id, place.post_number): place.rank or 0 for place in places}),
        found=places,
        said=said(one) if one else None,
    )


def said(one: Answered) -> Said:
    """The answer of a trace, of bounded size."""
    draft = one.draft if one.draft != one.markdown else ""
    return Said(one.result, one.markdown[:ANSWER_CHARS], draft[:ANSWER_CHARS], one.drafted_by)


def _goldens(case: Case, told: Mapping[Key, Told], ranks: Mapping[Key, int]) -> tuple[Place, ...]:
    return tuple(
        Place(
            golden.topic_id,
            golden.post_number,
            *_words(told, golden.topic_id, golden.post_number),
            rank=ranks.get((golden.topic_id, golden.post_number)),
            grade=golden.grade,
        )
        for golden in sorted(case.golden, key=lambda golden: -golden.grade)[:LISTED]
    )


def _post_ranks(one: Retrieved | None) -> dict[Key, int]:
    """The rank of each post, and of each topic's first."""
    ranks: dict[Key, int] = {}
    for at, hit in enumerate(one.hits if one else (), start=1):
        ranks.setdefault((hit.topic_id, hit.post_number), at)
        ranks.setdefault((hit.topic_id, None), at)
    return ranks


def _grades(case: Case) -> dict[Key, int]:
    return {(golden.topic_id, golden.post_number): golden.grade for golden in case.golden}


def _grade(grades: Mapping[Key, int], topic: int, number: int) -> int | None:
    return grades.get((topic, number), grades.get((topic, None)))


def _words(told: Mapping[Key, Told], topic: int, number: int | None) -> tuple[str, str]:
    one = told.get((topic, number), Told())
    return one.title, one.excerpt


def _at(values: Sequence[float | None], rank: int) -> float | None:
    return values[rank - 1] if rank <= len(values) else None
