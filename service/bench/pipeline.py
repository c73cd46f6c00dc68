"""Time of each stage of the answer pipeline, over questions asked of the index in use."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import yaml

from service.answer.pipeline import answer
from service.bench import percentiles_ms, report
from service.domain import Lang, Question, Trace
from service.errors import Misconfigured, Rejected
from service.store.pool import connection
from service.wiring.answering import Answering

WARM_UP = 2
TOTAL = "whole pipeline"

_TITLES = """
SELECT title FROM topics WHERE title <> '' AND NOT deleted ORDER BY md5(topic_id::text) LIMIT %s
"""


async def bench_pipeline(services: Answering, questions: Sequence[str]) -> dict[str, Any]:
    """Answer each question once, after a warm-up, and give each stage's times; nothing is posted."""
    times: dict[str, list[float]] = defaultdict(list)
    for text in questions[:WARM_UP]:
        await _answer(services, text)
    for text in questions:
        start = perf_counter()
        trace = await _answer(services, text)
        times[TOTAL].append(perf_counter() - start)
        for stage, ms in trace.timings_ms.items():
            times[stage].append(ms / 1000)
    rows = [{"system": stage, "n": len(taken), **percentiles_ms(taken)} for stage, taken in times.items()]
    rows.sort(key=lambda row: row["system"] == TOTAL)
    census = await services.corpus.census(services.embedder.profile)
    used = {
        "questions": len(questions),
        "posts": census.indexed,
        "embedder": services.embedder.profile.name,
        "index": services.embedder.profile.index_kind,
        "reranker": services.stages.reranker.profile.name,
    }
    return report("pipeline", settings=used, rows=rows, ratio=None)


async def _answer(services: Answering, text: str) -> Trace:
    trace = Trace()
    lang = services.stages.detect_language(text, fallback=Lang(services.settings.forum.language))
    await answer(Question(text, lang), services.stages, trace, seed=0)
    return trace


async def titles_as_questions(services: Answering, count: int) -> list[str]:
    """Titles of topics of the index, always the same ones; raises Misconfigured when it is empty."""
    async with connection(services.pool) as conn:
        titles = [str(row[0]) async for row in await conn.execute(_TITLES, (count,))]
    if not titles:
        raise Misconfigured("the index is empty: fill it with `ariane backfill`")
    return titles


def read_questions(path: Path, count: int) -> list[str]:
    """The first questions of a dataset's questions.yml; raises Rejected."""
    try:
        listed = yaml.safe_load(path.read_text(encoding="utf-8"))
        questions = [str(one["question"]) for one in listed]
    except (OSError, UnicodeDecodeError, yaml.YAMLError, TypeError, KeyError) as exc:
        raise Rejected(f"{path}: not a list of questions: {exc}") from exc
    return questions[:count]
