"""Candidates for judging by pooling: what several searches find for a question, the best of each first."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from service.answer.pipeline import Stages
from service.answer.retrieve import retrieve
from service.domain import Candidate, Lang, PostId, Question, Trace
from service.settings import Channel

SYSTEMS: tuple[tuple[Channel, ...], ...] = (
    (Channel.VECTOR, Channel.KEYWORD),
    (Channel.VECTOR,),
    (Channel.KEYWORD,),
)
"""The searches that are pooled: both channels fused, then each alone, whose finds the fusion may have buried."""


@dataclass(frozen=True, slots=True)
class Pooled:
    """Candidates in the order to be judged; `notes` say what a search went without."""

    candidates: tuple[Candidate, ...]
    notes: tuple[str, ...]


async def pool_candidates(text: str, lang: Lang, stages: Stages, *, depth: int) -> Pooled:
    """The first `depth` posts of each search, each post once."""
    trace = Trace()
    wanted = max(depth, stages.settings.candidates)
    rankings = []
    for channels in SYSTEMS:
        settings = stages.settings.model_copy(update={"channels": channels, "candidates": wanted})
        found = await retrieve(Question(text, lang), stages.embedder, stages.search, settings, trace)
        rankings.append(found[:depth])
    return Pooled(merged(rankings), tuple(dict.fromkeys(trace.notes)))


def merged(rankings: Sequence[Sequence[Candidate]]) -> tuple[Candidate, ...]:
    """Every candidate once, by its best rank, earlier rankings first among equals."""
    found: dict[PostId, Candidate] = {}
    for row in zip_longest(*rankings):
        for candidate in row:
            if candidate is not None:
                found.setdefault(candidate.post_id, candidate)
    return tuple(found.values())
