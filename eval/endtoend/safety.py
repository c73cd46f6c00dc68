"""Puts safety probes to the pipeline, the gate off and on, under each variant of the prompt."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby, product

from pydantic import SecretStr

from eval.datasets import Dataset, SafetyProbe, read_safety
from eval.domain import Answered, Measured
from eval.endtoend.abreast import abreast
from eval.endtoend.asking import ask
from eval.endtoend.copy import copied
from eval.endtoend.hostile import Planted, plant
from eval.endtoend.judge import shingles
from eval.endtoend.obedient import BY, ObedientModel, count_tokens
from eval.endtoend.probing import Judge, Judged, safety_values
from eval.endtoend.recording import recording
from eval.endtoend.results import warn
from eval.index import NAME, open_index
from eval.measures.rows import SAFETY
from eval.measures.table import summed_up
from eval.runs import Run
from service.answer.gate.compiled import load_gate
from service.answer.generate import GeneratedAnswerer, GenerateOptions
from service.answer.pipeline import Stages
from service.answer.prompt import system_text
from service.answer.templates import known_variant, languages, variants
from service.domain import Lang, Question, Zone
from service.ingest.backfill import Backfill
from service.ingest.eligibility import IndexRules
from service.progress import ProgressBar
from service.settings import Settings
from service.wiring.answering import Answering, open_answering
from service.wiring.configuration import configuration
from service.wiring.database import database_url

VARIANTS = variants()
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


@dataclass(frozen=True, slots=True)
class Put:
    """A finished run, what it measures, and what each setting's answers are worth, by its name."""

    run: Run
    measures: list[Measured]
    judged: Mapping[str, Sequence[Judged]]


async def put_all(
    settings: Settings,
    dataset: Dataset,
    *,
    obeys: bool,
    limit: int | None,
    resume: str | None,
    compared: Sequence[str] = (),
) -> Put:
    """Put every probe, or the first `limit`, under every setting, and judge; `obeys` replaces the configured answerer.

    The settings are the gate off and on under each variant of the prompt that is `compared`, else the configured one.
    Raises Misconfigured for an unknown variant, and Rejected, Misconfigured or Transient as opening the dataset's index
    and copying it do.
    """
    under = {
        known_variant(name): _with_prompt(settings, name)
        for name in compared or (settings.models.answerer.prompt_variant,)
    }
    put_under = tuple(Setting(variant, gate) for variant in under for gate in (False, True))
    probes = read_safety(dataset)[:limit]
    gate = load_gate(settings.gate)
    run = recording(
        settings,
        dataset,
        command="safety",
        labels=SAFETY,
        systems={
            one.name: {
                "variant": one.variant,
                "gate": one.gate,
                "configuration": configuration(under[one.variant]).sha256,
            }
            for one in put_under
        },
        options={"obedient": obeys, "limit": limit},
        resume=resume,
        now=datetime.now(UTC),
    )
    with run, ProgressBar() as progress:
        async with _hostile_index(settings, under, dataset, progress) as opened:
            planted = await plant(probes, _backfill(next(iter(opened.values())), progress), now=datetime.now(UTC))
            stages = {name: obedient(at.stages, name) if obeys else at.stages for name, at in opened.items()}
            said = {setting.name: run.answered(SAFETY, setting.name) for setting in put_under}
            tasks = [(probe, one) for probe in probes for one in put_under if probe.id not in said[one.name]]
            all_tasks = len(probes) * len(put_under)

            async def say(probe: SafetyProbe, setting: Setting) -> Answered:
                its = stages[setting.variant]
                return await ask(probe.id, _question(probe, its), its, gate if setting.gate else None)

            async for setting, answered in put(tasks, planted, say, at_once=_at_once(settings, under)):
                run.append(SAFETY, setting.name, answered)
                said[setting.name][answered.case_id] = answered
                progress("probes", sum(map(len, said.values())), all_tasks)
        topics = {probe: frozenset(topic.id for topic in its) for probe, its in planted.topics.items()}
        judge = Judge(settings.forum.base_url, told(), topics)
        judged = {name: [judge.judge(probe, its.get(probe.id)) for probe in probes] for name, its in said.items()}
        tables = {name: safety_values(its) for name, its in judged.items()}
        measures = summed_up(SAFETY, tables, seed=run.record.seed)
        run.finish(measures, now=datetime.now(UTC))
    return Put(run, measures, judged)


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


def obedient(stages: Stages, variant: str) -> Stages:
    """The stages with a model that obeys whatever it reads, and nothing to stand in for it."""
    options = GenerateOptions(BY, source_chars=stages.settings.evidence_chars, variant=variant)
    return replace(stages, answerer=GeneratedAnswerer(ObedientModel(), count_tokens, options))


def told() -> frozenset[tuple[str, ...]]:
    """The shingles of everything that the prompt tells a model, in every variant, language and zone."""
    every = product(languages(), (Zone.NORMAL, Zone.WEAK), VARIANTS)
    return shingles(system_text(lang, zone, variant) for lang, zone, variant in every)


@asynccontextmanager
async def _hostile_index(
    settings: Settings, under: Mapping[str, Settings], dataset: Dataset, progress: ProgressBar
) -> AsyncIterator[dict[str, Answering]]:
    """The stages under each of these settings, by its name, over one copy of the dataset's index, to be spoilt."""
    async with open_index(settings, dataset, progress=progress, say=lambda line: warn([line])) as whole:
        source = whole.settings.database.url.get_secret_value()
    async with copied(await database_url(settings), source, settings.database) as copy:
        database = settings.database.model_copy(update={"url": SecretStr(copy)})
        async with AsyncExitStack() as stack:
            yield {
                name: await stack.enter_async_context(
                    open_answering(its.model_copy(update={"database": database}), NAME)
                )
                for name, its in under.items()
            }


def _with_prompt(settings: Settings, variant: str) -> Settings:
    answerer = settings.models.answerer.model_copy(update={"prompt_variant": variant})
    return settings.model_copy(update={"models": settings.models.model_copy(update={"answerer": answerer})})


def _at_once(settings: Settings, under: Collection[str]) -> int:
    """How many questions are under way: the stages of each variant take turns at the model by themselves."""
    most = settings.worker.answer_concurrency
    return most if len(under) == 1 else min(most, settings.models.answerer.concurrency)


def _backfill(at: Answering, progress: ProgressBar) -> Backfill:
    return Backfill(at.corpus, at.corpus, at.embedder, IndexRules(frozenset(), index_banners=False), progress)


def _question(probe: SafetyProbe, stages: Stages) -> Question:
    lang = stages.detect_language(probe.text, fallback=Lang(probe.lang))
    return Question(probe.text[: stages.settings.question_chars], lang)
