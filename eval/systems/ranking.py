"""Asks every system every case, and stores what each finds as it comes."""

import asyncio
from collections.abc import Callable, Sequence

from eval.domain import Case, Labels, Retrieved
from eval.runs import Run
from eval.systems.system import System
from eval.systems.tasks import together

ABREAST = 3
"""Cases under way at a time: while the database searches for one, this process scores another."""


async def rank_all(
    run: Run, cases: Sequence[Case], systems: Sequence[System], progress: Callable[[str, int, int], None]
) -> None:
    """Rank what the run doesn't hold yet, case by case in their order; `progress` hears (step, done, total).

    Raises what a system raises; what was ranked by then is in the run.
    """
    for labels in dict.fromkeys(case.labels for case in cases):
        await _rank_labels(run, labels, [case for case in cases if case.labels is labels], systems, progress)


async def _rank_labels(
    run: Run,
    labels: Labels,
    cases: Sequence[Case],
    systems: Sequence[System],
    progress: Callable[[str, int, int], None],
) -> None:
    known = {system.name: run.retrieved(labels, system.name) for system in systems}
    left = [
        (case, missing) for case in cases if (missing := [one for one in systems if case.id not in known[one.name]])
    ]
    done = len(cases) - len(left)
    progress(labels, done, len(cases))
    waiting = iter(left)

    async def rank_in_turn() -> None:
        nonlocal done
        for case, missing in waiting:
            for found, system in zip(await _ranked(case, missing), missing, strict=True):
                run.append(labels, system.name, found)
            done += 1
            progress(labels, done, len(cases))

    await together(*(rank_in_turn() for _ in range(ABREAST)))


async def _ranked(case: Case, systems: Sequence[System]) -> list[Retrieved]:
    return await asyncio.gather(*(system.rank(case) for system in systems))
