"""The zones: where the thresholds lie, and that losing the reranker never loses abstention."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.answer.zones import by_rank, list_score, score_feature, zone_of, zone_of_list, zone_without_reranker
from service.domain import Borders, Mode, RerankerProfile, ScoreFeature, Zone, ZoneModel

MMARCO = RerankerProfile("mmarco", weak=-4.0, normal=0.0, provisional=False)
MODEL = ZoneModel(
    bias=-1.0,
    features=((ScoreFeature.GAP, 2.0), (ScoreFeature.TOP_COSINE, 10.0)),
    ranks=(0.5, 0.0, -0.25),
    borders=Borders(weak=8.0, normal=9.0),
)
FITTED = replace(MMARCO, keyword=Borders(weak=-2.0, normal=1.0), zone_model=MODEL)


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


@pytest.mark.parametrize(
    ("logits", "cosine", "mode", "zone"),
    [
        ([1.0, 0.0, -2.0], 0.8, Mode.RERANKED, Zone.NORMAL),  # -1 + 2 * 1 + 10 * 0.8 + 0.5 * 1 + 0.25 * 2 = 10
        ([1.0, 0.9], 0.8, Mode.RERANKED, Zone.ABSTAIN),  # -1 + 0.2 + 8 + 0.5 - 0.225 = 7.475
        ([-9.0, -9.9, -22.0], 0.85, Mode.RERANKED, Zone.NORMAL),  # -1 + 1.8 + 8.5 - 4.5 + 5.5 = 10.3
        ([0.0], 0.9, Mode.RERANKED, Zone.WEAK),  # -1 + 9 = 8
        ([1.0, math.nan], 0.9, Mode.RERANKED, Zone.ABSTAIN),
        ([0.5, 0.4], None, Mode.RERANKED, Zone.NORMAL),  # by the top logit
        ([0.5, 0.4], 0.8, Mode.KEYWORD, Zone.WEAK),
        ([-2.5, -3.0], None, Mode.KEYWORD, Zone.ABSTAIN),
        ([], 0.9, Mode.RERANKED, Zone.ABSTAIN),
    ],
)
def test_a_zone_model_judges_the_whole_list(logits: list[float], cosine: float | None, mode: Mode, zone: Zone) -> None:
    assert zone_of_list(logits, cosine, FITTED, mode) is zone


@given(
    logits=st.lists(st.floats(-30, 30), min_size=1, max_size=30),
    cosine=st.none() | st.floats(-1, 1),
    mode=st.sampled_from(Mode),
)
def test_a_profile_that_nobody_calibrated_judges_by_the_top_logit(
    logits: list[float], cosine: float | None, mode: Mode
) -> None:
    logits.sort(reverse=True)
    assert zone_of_list(logits, cosine, MMARCO, mode) is zone_of(logits[0], MMARCO)


def test_the_features_of_a_list() -> None:
    logits = [3.0, 1.0, 1.0, 0.0, 0.0, -5.0]
    found = {name: score_feature(name, logits, 0.75) for name in ScoreFeature}
    assert found == {
        ScoreFeature.TOP: 3.0,
        ScoreFeature.GAP: 2.0,
        ScoreFeature.MEAN_5: 1.0,
        ScoreFeature.SPREAD: pytest.approx(math.sqrt(6)),  # a mean of 0, and 36 / 6
        ScoreFeature.LOG_SUM: pytest.approx(math.log(1 + 2 * math.exp(-2) + 2 * math.exp(-3) + math.exp(-8))),
        ScoreFeature.TOP_COSINE: 0.75,
    }
    assert score_feature(ScoreFeature.GAP, [3.0], 0.75) == 0.0
    assert score_feature(ScoreFeature.LOG_SUM, [2.0] * 25, 0.75) == pytest.approx(math.log(25))


def test_a_short_list_goes_on_with_its_last_logit() -> None:
    assert by_rank([2.0, 1.0], 4) == [2.0, 1.0, 1.0, 1.0]
    assert by_rank([2.0, 1.0, 0.0], 2) == [2.0, 1.0]
    assert list_score([2.0], 0.0, MODEL) == pytest.approx(-1 + 0.25 * 2)
