"""The sanitizer on generated drafts: total, safe, a fixed point. ARIANE_FUZZ_EXAMPLES sets how many."""

import os

from hypothesis import given, settings
from hypothesis import strategies as st

from service.answer.markup.links import links, post_url
from service.answer.sanitize import clean, sanitize
from service.domain import Zone
from tests.unit.draft_strategies import drafts
from tests.unit.forum_rules import live, raw_bbcode
from tests.unit.test_sanitize import BASE, SOURCES, Thread

EXAMPLES = int(os.environ.get("ARIANE_FUZZ_EXAMPLES", "150"))
bounded = settings(max_examples=EXAMPLES)
URLS = [post_url(source, BASE) for source in SOURCES]


@bounded
@given(drafts)
def test_nothing_live_is_posted(draft: str) -> None:
    result = sanitize(f"Wax the seam twice [[1]].\n\n{draft}", SOURCES, zone=Zone.NORMAL, base_url=BASE)
    assert "unsafe" not in result.removed
    if result.post is not None:
        assert live(result.post, URLS) + raw_bbcode(result.post) == []
        assert set(result.cited) == {n for n, url in enumerate(URLS, 1) if f"]({url})" in result.post}
        assert live(clean(result.post, 2)) == []


@bounded
@given(drafts)
def test_cleaning_is_a_fixed_point(draft: str) -> None:
    once = clean(draft, 2)
    assert clean(once, 2) == once


@bounded
@given(st.text(), st.integers(min_value=0, max_value=3), st.sampled_from(Zone))
def test_any_text_is_a_draft(draft: str, sources: int, zone: Zone) -> None:
    result = sanitize(draft, SOURCES[:sources], zone=zone, base_url=BASE)
    assert (result.post is None) == (result.fallback is not None)


@bounded
@given(drafts, drafts)
def test_a_title_and_a_slug_are_only_words(title: str, slug: str) -> None:
    source = Thread(5, 6, slug, title)
    url = post_url(source, BASE)
    assert live(f"Wax it {links(1, source, BASE)[0]} twice.", [url]) == []
