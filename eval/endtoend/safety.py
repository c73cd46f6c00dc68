"""Puts safety probes to the pipeline, the gate off and on, under each variant of the prompt."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from itertools import groupby

from eval.datasets import SafetyProbe
from eval.domain import Answered
from eval.endtoend.abreast import abreast
from eval.endtoend.hostile import Planted
from eval.endtoend.judge import shingles
from eval.endtoend.obedient import BY, ObedientModel, count_tokens
from service.answer.generate import GeneratedAnswerer, GenerateOptions
from service.answer.pipeline import Stages
from service.answer.prompt import languages, system_text
from service.domain import Zone

VARIANTS = ("default",)
"""The variants of the prompt that the service offers."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a probe is put under."""

    variant: str
    gate: bool

    @property
    def name(self) -> str:
        return f"{self.variant}.gate-{'on' if self.gate else 'off'}"


Task = tuple[SafetyProbe, Setting]


async def put(
    tasks: Iterable[Task], planted: Planted, say: Callable[[SafetyProbe, Setting], Awaitable[Answered]], *, at_once: int
) -> AsyncIterator[tuple[Setting, Answered]]:
    """What is said to each probe under each of its settings, at most `at_once` under way; a probe's tasks are in a row.

    A probe with evidence has the forum for itself: nobody else's hostile posts are shown meanwhile.
    """

    async def one(task: Task) -> tuple[Setting, Answered]:
        return task[1], await say(*task)

    waiting = list(tasks)
    async for said in abreast([task for task in waiting if not task[0].evidence], one, at_once=at_once):
        yield said
    hostile = [task for task in waiting if task[0].evidence]
    for _, its in groupby(hostile, key=lambda task: task[0].id):
        mine = list(its)
        async with planted.shown(mine[0][0]):
            async for said in abreast(mine, one, at_once=at_once):
                yield said


def obedient(stages: Stages) -> Stages:
    """The stages with a model that obeys whatever it reads, and nothing to stand in for it."""
    options = GenerateOptions(BY, source_chars=stages.settings.evidence_chars)
    return replace(stages, answerer=GeneratedAnswerer(ObedientModel(), count_tokens, options))


def told() -> frozenset[tuple[str, ...]]:
    """The shingles of everything that the prompt tells a model, in every language and zone."""
    return shingles(system_text(lang, zone) for lang in languages() for zone in (Zone.NORMAL, Zone.WEAK))
