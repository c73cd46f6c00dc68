"""Which questions of a run of retrieve or answer went worst."""

from collections.abc import Mapping, Sequence
from math import inf

from eval.domain import Answered, Case, Retrieved
from eval.measures import Grain, first_ranks, outcome
from eval.measures.answers import ABSTAINED_WRONG, ANSWERED_WRONG, FAILED
from service.domain import Zone

Found = Mapping[str, Mapping[str, Retrieved]]
"""By system and case id."""

_UNCALLED_FOR = {Zone.NORMAL: 1.0, Zone.WEAK: 0.5}
"""How bad a zone is for a question that the forum doesn't answer."""


def worst_found(cases: Sequence[Case], found: Found, system: str) -> list[Case]:
    """The cases that `system` ranks badly, the worst first.

    Badness is 1 - 1 / rank of the first topic that answers; without an answer in the forum it is 1 where it would be
    given as normal, 1/2 as weak. Of equals those first that another system ranks higher: they could have been found.
    """
    ranks = {name: first_ranks(cases, its, Grain.TOPIC) for name, its in found.items()}

    def badness(case: Case) -> float:
        if case.answerable:
            rank = ranks[system].get(case.id)
            return 1.0 - 1.0 / rank if rank else 1.0
        one = found[system].get(case.id)
        return _UNCALLED_FOR.get(Zone(one.zone), 0.0) if one and one.zone else 0.0

    def others(case: Case) -> float:
        return min((its.get(case.id) or inf for name, its in ranks.items() if name != system), default=inf)

    bad = [case for case in cases if badness(case) > 0]
    return sorted(bad, key=lambda case: (-badness(case), others(case)))


def worst_answered(cases: Sequence[Case], answered: Mapping[str, Answered]) -> list[Case]:
    """The cases with a bad outcome: wrong answers first, those given without caution before the others."""
    order = [(ANSWERED_WRONG, Zone.NORMAL), (ANSWERED_WRONG, Zone.WEAK), (FAILED, ""), (ABSTAINED_WRONG, "")]

    def place(case: Case) -> int | None:
        one = answered.get(case.id)
        ended = outcome(case, one)
        zone = one.zone if one and ended == ANSWERED_WRONG else ""
        return order.index((ended, zone)) if (ended, zone) in order else None

    placed = [(at, case) for case in cases if (at := place(case)) is not None]
    return [case for _, case in sorted(placed, key=lambda item: (item[0], item[1].answerable))]
