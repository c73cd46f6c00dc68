"""A reranker that is slow or hangs while questions wait: none lost, none answered twice, drained within a bound."""

import math
from collections import Counter
from pathlib import Path
from time import monotonic

import pytest

from service.domain import Mode, Trace, Zone
from tests.e2e.fallback_kit import gave_up, unhandled
from tests.e2e.model_loop import TIMEOUT_SECONDS, ModelLoop, hangs, model_loop

QUESTIONS = 20
OTHER_STAGES_SECONDS = 1.0
"""What a question takes beside the reranker, at most, on a machine that does other things too (alone it is 0.1 s)."""


def bound_seconds(it: ModelLoop, questions: int = QUESTIONS) -> float:
    """However slow the reranker is: each worker slot waits one timeout a question, and the breaker spares most of them.

    Besides, when the first question comes: what the server says of itself, and its proof.
    """
    timeout = it.loop.settings.models.reranker.timeout_seconds
    rounds = math.ceil(questions / it.loop.settings.worker.answer_concurrency)
    return 2 * timeout + rounds * (timeout + OTHER_STAGES_SECONDS)


async def drain(it: ModelLoop, case: str) -> list[Trace]:
    """Ask them all at once; their traces once each has its one reply and the queue is empty, within the bound."""
    failed, started, bound = gave_up(), monotonic(), bound_seconds(it)
    with unhandled():
        posts = [it.ask() for _ in range(QUESTIONS)]
        await it.answered(*posts, seconds=bound)
        took = monotonic() - started
        await it.no_question_left()
    assert it.answers(*posts) == [1] * QUESTIONS
    assert gave_up() == failed
    traces = [await it.trace(post) for post in posts]
    modes = dict(Counter(trace.mode for trace in traces))
    waited = sum(trace.timings_ms["rerank"] for trace in traces) / 1000
    print(f"{case}: {QUESTIONS} in {took:.1f} s (bound {bound:.0f} s), {waited:.1f} s of it for the reranker, {modes}")
    return traces


async def test_ten_questions_to_a_reranker_that_hangs_cost_five_timeouts(database_url: str, tmp_path: Path) -> None:
    async with model_loop(
        database_url, tmp_path, worker={"answer_concurrency": 1}, models={"breaker_open_seconds": 30.0}
    ) as it:
        first = it.ask()
        await it.answered(first)
        it.servers["reranker"].always = hangs
        asked_before = len(it.servers["reranker"].seen)
        started = monotonic()
        posts = [it.ask() for _ in range(10)]
        await it.answered(*posts)
        took = monotonic() - started
        waits = [(await it.trace(post)).timings_ms["rerank"] / 1000 for post in posts]
        failures = it.loop.settings.models.breaker_failed_calls
        print(f"10 questions in {took:.1f} s; waits for the reranker: {[round(wait, 2) for wait in waits]}")
        assert sum(wait >= TIMEOUT_SECONDS for wait in waits) == failures
        assert sum(waits) <= (failures + 1) * TIMEOUT_SECONDS
        assert took <= failures * TIMEOUT_SECONDS + 10 * OTHER_STAGES_SECONDS
        assert len(it.servers["reranker"].seen) - asked_before == failures
        await it.no_question_left()
        assert it.answers(first, *posts) == [1] * 11


@pytest.mark.parametrize(
    ("seconds", "mode", "zone"),
    [(2 * TIMEOUT_SECONDS, Mode.RERANKER_DOWN, Zone.WEAK), (TIMEOUT_SECONDS / 5, Mode.RERANKED, Zone.NORMAL)],
    ids=["past its timeout", "within its timeout"],
)
async def test_the_queue_drains_while_the_reranker_is_slow(
    database_url: str, tmp_path: Path, seconds: float, mode: Mode, zone: Zone
) -> None:
    async with model_loop(database_url, tmp_path) as it:
        it.servers["reranker"].seconds = seconds
        traces = await drain(it, f"TEI slowed to {seconds:g} s, timeout {TIMEOUT_SECONDS:g} s")
        assert {(trace.mode, trace.zone) for trace in traces} == {(mode, zone)}


@pytest.mark.heavy
@pytest.mark.parametrize("seconds", [10.0, 9.0])
@pytest.mark.timeout(300)
async def test_the_queue_drains_while_tei_takes_ten_seconds(database_url: str, tmp_path: Path, seconds: float) -> None:
    defaults = {"timeout_seconds": 10.0}
    async with model_loop(database_url, tmp_path, reranker=defaults, models={"breaker_open_seconds": 30.0}) as it:
        it.servers["reranker"].seconds = seconds
        traces = await drain(it, f"TEI slowed to {seconds:g} s, default timeout of 10 s")
        assert all(trace.mode is Mode.RERANKED or trace.zone is not Zone.NORMAL for trace in traces)
