"""Which questions stand or fall together: those that one topic answers or helps, and whoever shares one with them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eval.domain import Case
from service.domain import TopicId


def clustered(cases: Sequence[Case]) -> tuple[Case, ...]:
    """The cases, each with its cluster: the connected components over the topics of their goldens.

    A topic that only helps ties as well: what is found of it moves both questions. A cluster is named by its lowest
    topic; a question that nothing answers is alone.
    """
    leads: dict[TopicId, TopicId] = {}
    for case in cases:
        roots = {_root(leads, topic_id) for topic_id in _tying(case)}
        leads.update((root, min(roots)) for root in roots)
    return tuple(replace(case, cluster=_name(case, leads)) for case in cases)


def _name(case: Case, leads: dict[TopicId, TopicId]) -> str:
    topic_id = next(_tying(case), None)
    return f"question {case.id}" if topic_id is None else str(_root(leads, topic_id))


def _tying(case: Case) -> Iterator[TopicId]:
    return (one.topic_id for one in case.golden if case.answerable)


def _root(leads: dict[TopicId, TopicId], topic_id: TopicId) -> TopicId:
    """The lowest topic known of this one's component; the way there is kept short."""
    while leads.setdefault(topic_id, topic_id) != topic_id:
        leads[topic_id] = topic_id = leads[leads[topic_id]]
    return topic_id
