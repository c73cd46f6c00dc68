"""`ariane ask`: one question against the index, for people and for scripts."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import click
import yaml

from service.answer.condense.in_full import in_full
from service.answer.messages import wordings
from service.answer.pipeline import answer
from service.commands.options import configured
from service.domain import Answer, Lang, Question, RerankerProfile, Trace
from service.errors import Misconfigured, Rejected, Transient
from service.inference.language import LanguageDetector
from service.settings import Settings, demo_home
from service.store.flags import FlagStore
from service.store.gate_rules import GateRuleStore
from service.wiring.answering import Answering, open_answering

FAILED = 1


@click.command("ask")
@click.argument("question")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--lang", help="Language of the server's own words (fr, en); told from the question by default.")
@click.option(
    "--history",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Earlier turns: a YAML or JSON list of {role: user|bot, text}.",
)
@configured
def command(settings: Settings, question: str, as_json: bool, lang: str | None, history: Path | None) -> None:
    """Ask QUESTION of the index and show the answer with its sources, scores and timings. Nothing is posted."""
    text = question.strip()
    if not text:
        raise click.UsageError("the question is empty")
    if lang and lang not in wordings():
        raise click.BadParameter(f"{lang!r} is none of {', '.join(wordings())}", param_hint="--lang")
    turns = read_history(history) if history else ()
    sys.exit(asyncio.run(_ask(settings, text, turns, lang, as_json=as_json)))


async def _ask(
    settings: Settings, text: str, turns: tuple[tuple[str, str], ...], lang: str | None, *, as_json: bool
) -> int:
    trace = Trace()
    # The few words of many a question need a model for it, which takes as long to load as the database to open.
    telling = asyncio.create_task(asyncio.to_thread(_language, settings, text, lang))
    async with open_answering(settings, "ask") as services:
        stages = await services.embedders.applied(services.stages)
        if await services.corpus.is_empty():
            raise Misconfigured(f"the index is empty: fill it with `ariane backfill`{_demo_hint(settings)}")
        question = Question(text[: settings.retrieval.question_chars], await telling, history=turns)
        try:
            passed = await _passed(settings, services, question, trace)
            answered = passed if isinstance(passed, Answer) else await answer(passed, stages, trace, seed=0)
        except Transient as exc:
            click.echo(f"ariane: {exc}", err=True)
            if as_json:
                click.echo(json.dumps(failure(trace)))
            return FAILED
        profile = stages.reranker.profile
    if as_json:
        click.echo(json.dumps(report(answered, trace, settings.forum.base_url), ensure_ascii=False))
    else:
        _show(text, answered, trace, profile)
    return 0


def _language(settings: Settings, text: str, lang: str | None) -> Lang:
    if lang:
        return Lang(lang)
    return LanguageDetector(tuple(wordings()))(text, fallback=Lang(settings.forum.language))


async def _passed(settings: Settings, services: Answering, question: Question, trace: Trace) -> Question | Answer:
    """The question in full, or the reply of the gate, if it is on."""
    condenser = services.stages.condenser
    if not (await FlagStore(services.pool).read()).input_gate:
        return await in_full(question, condenser, trace)
    # Slow to import and to compile: only where the gate is on.
    from service.answer.gate.admit import Gating, admitted
    from service.answer.gate.in_use import GateInUse

    rules = await GateInUse(settings.gate, GateRuleStore(services.pool)).read()
    gating = Gating(rules, tuple(text for role, text in question.history if role == "user"))
    return await admitted(question, gating, condenser, trace, seed=0)


def _demo_hint(settings: Settings) -> str:
    demo = demo_home(settings)
    return f", or ask the demo forum: ARIANE_HOME={demo} ariane ask ..." if demo.is_dir() else ""


def _show(text: str, answered: Answer, trace: Trace, profile: RerankerProfile) -> None:
    # Drawing takes imports that a script, which waits for each answer, need not pay for.
    from rich.console import Console

    from service.show import show_answer

    show_answer(
        Console(),
        question=text,
        markdown=answered.markdown,
        zone=answered.zone,
        mode=answered.mode,
        sources=answered.sources,
        cited=answered.cited,
        profile=profile,
        timings_ms=trace.timings_ms,
    )


def read_history(path: Path) -> tuple[tuple[str, str], ...]:
    """The turns of a history file, oldest first; raises Rejected saying which is wrong."""
    try:
        turns = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as exc:
        raise Rejected(f"{path}: {exc}") from exc
    if not isinstance(turns, list):
        raise Rejected(f"{path}: expected a list of {{role, text}}")
    for number, turn in enumerate(turns, start=1):
        known = isinstance(turn, dict) and turn.get("role") in ("user", "bot") and isinstance(turn.get("text"), str)
        if not known:
            raise Rejected(f"{path}, turn {number}: expected {{role: user|bot, text: ...}}")
    return tuple((turn["role"], turn["text"]) for turn in turns)


def report(answered: Answer, trace: Trace, base_url: str) -> dict[str, Any]:
    """The stable JSON shape of an answer (README: entry points)."""
    from service.answer.markup.links import post_url  # slow to import: loaded by now

    return {
        "outcome": answered.result,
        "zone": answered.zone,
        "answer": answered.markdown,
        "queries": trace.queries,
        "mode": answered.mode,
        "sources": [
            {
                "n": source.n,
                "kind": "post",
                "topic_id": source.topic_id,
                "post_number": source.post_number,
                "title": source.title,
                "url": post_url(source, base_url),
                "cosine": source.cosine,
                "logit": source.logit,
                "cited": source.n in answered.cited,
            }
            for source in answered.sources
        ],
        "timings_ms": {stage: round(ms, 2) for stage, ms in trace.timings_ms.items()},
    }


def failure(trace: Trace) -> dict[str, Any]:
    """The same shape where the index could not be searched."""
    return {
        "outcome": "failed",
        "zone": None,
        "answer": "",
        "queries": trace.queries,
        "mode": trace.mode,
        "sources": [],
        "timings_ms": trace.timings_ms,
    }
