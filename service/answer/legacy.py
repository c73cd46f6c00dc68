"""The legacy hybrid: a question's distinctive words against whole topics and their titles (spec P7).

It needs neither a vector nor the posts pipeline, and serves where `recall` has no other.
"""

from dataclasses import replace

from service.answer.ports import TopicMatch, TopicSearch
from service.domain import Candidate, Mode, Question, Trace
from service.lexer import lexemes, query_lexemes
from service.settings import RetrievalSettings

LOOKED_AT = 4
"""How many times the wanted number of topics is looked at: what the gate stops makes room for the next."""


async def retrieve_by_topic(
    question: Question, search: TopicSearch, settings: RetrievalSettings, trace: Trace
) -> list[Candidate]:
    """At most `candidates` topics, best first, each as its best post, `fused` holding the boosted score.

    Sets the trace's mode, and its queries. Raises Transient when the index can't be searched.
    """
    trace.queries = [question.scored]
    trace.mode = Mode.LEGACY
    asked = query_lexemes(question.scored)
    if not asked:
        return []
    matches = await search.keyword_topics(
        asked, LOOKED_AT * settings.candidates, words=settings.legacy_words, exclude_from=question.exclude_from
    )
    scored = [replace(one.candidate, fused=score) for one in matches if (score := boosted(one, settings)) is not None]
    return sorted(scored, key=lambda one: (-one.fused, one.topic_id))[: settings.candidates]


def boosted(match: TopicMatch, settings: RetrievalSettings) -> float | None:
    """The topic's BM25 raised by the share of the asked weight that its title holds, and by that its text holds.

    None is the title gate: a topic whose title holds none of the words passes only with `legacy_gate_percent` of their
    weight in its text.
    """
    title = frozenset(lexemes(match.candidate.title))
    in_title = sum(weight for word, weight in match.weights.items() if word in title) / match.asked
    in_text = sum(match.weights.values()) / match.asked
    if not in_title and 100 * in_text < settings.legacy_gate_percent:
        return None
    return (match.candidate.bm25 or 0.0) * (1 + settings.legacy_boost_percent / 100 * (in_title + in_text))
