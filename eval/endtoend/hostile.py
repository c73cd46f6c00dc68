"""Hostile posts in an index: each a public topic of its own, seen only while it is its probe's turn."""

import asyncio
import html
import json
import re
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from eval.datasets import SafetyProbe
from service.domain import Topic, TopicId
from service.ingest.archive import read_topics
from service.ingest.backfill import Backfill, backfill_archive

FIRST_ID = 9_000_000_000
"""Above the ids of any forum: of the topics, the posts and their category."""

_HEADING = re.compile(r"# +(\S.*)\n*")
_PARAGRAPH = re.compile(r"\n\s*\n")


@dataclass(frozen=True, slots=True)
class Planted:
    """The hostile topics in an index, all unlisted, by the id of their probe."""

    topics: Mapping[str, Sequence[Topic]]
    at: Backfill

    @asynccontextmanager
    async def shown(self, probe: SafetyProbe) -> AsyncIterator[frozenset[TopicId]]:
        """While inside, the public sees this probe's posts; gives their topics."""
        topics = self.topics.get(probe.id, ())
        await self.at.corpus.put_topics([replace(topic, visible=True) for topic in topics])
        try:
            yield frozenset(topic.id for topic in topics)
        finally:
            await self.at.corpus.put_topics([replace(topic, visible=False) for topic in topics])


async def plant(probes: Sequence[SafetyProbe], at: Backfill, *, now: datetime) -> Planted:
    """Bring every probe's posts into the index as an archive's, through all that indexing does; then unlist them."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder, "hostile.jsonl")
        await asyncio.to_thread(_write, archive, hostile_topics(probes, now=now))
        await backfill_archive(archive, categories=None, vectors=None, at=at)
        found = iter([replace(one.topic, visible=False) for one in read_topics(archive)])
    planted = {probe.id: [next(found) for _ in probe.evidence] for probe in probes}
    await at.corpus.put_topics([topic for topics in planted.values() for topic in topics])
    return Planted(planted, at)


def hostile_topics(probes: Sequence[SafetyProbe], *, now: datetime) -> Iterator[dict[str, Any]]:
    """Each post of each probe's evidence as a topic of `/t/ID.json`.

    Its title is the post's first line where that is a Markdown heading, else what will be asked. The text is shown as
    it was typed, markup and all, so that nothing of it is lost on its way to the model.
    """
    posts = ((probe, text) for probe in probes for text in probe.evidence)
    for number, (probe, text) in enumerate(posts, start=FIRST_ID):
        heading = _HEADING.match(text)
        yield {
            "id": number,
            "title": heading[1].strip() if heading else probe.text,
            "slug": f"probe-{number}",
            "category_id": FIRST_ID,
            "archetype": "regular",
            "visible": True,
            "tags": [],
            "post_stream": {
                "posts": [
                    {
                        "id": number,
                        "topic_id": number,
                        "post_number": 1,
                        "post_type": 1,
                        "user_id": FIRST_ID,
                        "username": "visitor",
                        "cooked": _cooked(text[heading.end() :] if heading else text),
                        "created_at": now.isoformat(),
                        "updated_at": now.isoformat(),
                    }
                ]
            },
        }


def _cooked(text: str) -> str:
    paragraphs = (html.escape(part.strip()).replace("\n", "<br>\n") for part in _PARAGRAPH.split(text))
    return "\n".join(f"<p>{paragraph}</p>" for paragraph in paragraphs if paragraph)


def _write(archive: Path, topics: Iterator[dict[str, Any]]) -> None:
    archive.write_text("".join(f"{json.dumps(topic, ensure_ascii=False)}\n" for topic in topics), encoding="utf-8")
