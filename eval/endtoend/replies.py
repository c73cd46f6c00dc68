"""Answers a whole label file with the production pipeline, into a run that can be gone on with."""

from collections.abc import Callable, Sequence

from eval.domain import Answered, Case
from eval.endtoend.abreast import abreast
from eval.endtoend.asking import ask, question_of, stages_of
from eval.runs import Run
from service.answer.pipeline import Stages

SYSTEM = "pipeline"


async def answer_all(
    run: Run,
    cases: Sequence[Case],
    labels: str,
    stages: Stages,
    *,
    at_once: int,
    progress: Callable[[str, int, int], None],
) -> dict[str, Answered]:
    """What the pipeline says to every case, by case id: those that the run holds already are not asked again."""
    answered = run.answered(labels, SYSTEM)
    left = [case for case in cases if case.id not in answered]
    progress("questions", len(cases) - len(left), len(cases))

    async def one(case: Case) -> Answered:
        return await ask(case.id, question_of(case, stages), stages_of(case, stages))

    async for said in abreast(left, one, at_once=at_once):
        run.append(labels, SYSTEM, said)
        answered[said.case_id] = said
        progress("questions", len(answered), len(cases))
    return {case.id: answered[case.id] for case in cases}
