"""The zones: where the thresholds lie, and that losing the reranker never loses abstention."""

import math

import pytest

from service.answer.zones import zone_of, zone_without_reranker
from service.domain import RerankerProfile, Zone

MMARCO = RerankerProfile("mmarco", weak=-4.0, normal=0.0, provisional=False)


@pytest.mark.parametrize(
    ("logit", "zone"),
    [
        (-math.inf, Zone.ABSTAIN),
        (-4.0001, Zone.ABSTAIN),
        (-4.0, Zone.WEAK),
        (-0.0001, Zone.WEAK),
        (0.0, Zone.NORMAL),
        (9.5, Zone.NORMAL),
        (math.nan, Zone.ABSTAIN),
        (None, Zone.ABSTAIN),
    ],
)
def test_the_top_logit_gives_the_zone(logit: float | None, zone: Zone) -> None:
    assert zone_of(logit, MMARCO) is zone


@pytest.mark.parametrize(
    ("cosine", "zone"),
    [(0.91, Zone.WEAK), (0.9, Zone.WEAK), (0.8999, Zone.ABSTAIN), (1.0, Zone.WEAK), (None, Zone.ABSTAIN)],
)
def test_without_a_reranker_the_zone_is_weak_at_best(cosine: float | None, zone: Zone) -> None:
    assert zone_without_reranker(cosine, floor=0.9) is zone
