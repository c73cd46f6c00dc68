"""The stored traces, read back: what happened to a question, as moderators and the demo see it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from service.domain import Candidate, Mode, PostId, Source, TopicScores, Trace, Zone
from service.store.pool import Pool, connection

_LATEST = """
SELECT traces.outcome, traces.reason, traces.recorded_at, traces.trace, coalesce(answers.cited, '{}')
FROM traces LEFT JOIN answers USING (post_id)
WHERE post_id = %s ORDER BY recorded_at DESC, trace_id DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """The last that happened to a post: the words of its outcome, its trace, and the numbers of the cited sources."""

    outcome: str
    reason: str | None
    recorded_at: datetime
    trace: Trace
    cited: tuple[int, ...]


class TraceStore:
    """Reads traces."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def latest(self, post_id: PostId) -> StoredTrace | None:
        """The newest trace of this post, or None when it has none."""
        async with connection(self._pool) as conn:
            row = await (await conn.execute(_LATEST, (post_id,))).fetchone()
        if row is None:
            return None
        outcome, reason, recorded_at, stored, cited_posts = row
        trace = read_trace(stored)
        cited = tuple(source.n for source in trace.sources if source.post_id in cited_posts)
        return StoredTrace(outcome, reason, recorded_at, trace, cited)


def read_trace(stored: Mapping[str, Any]) -> Trace:
    """A trace as `service.store.ledger` stored it; what an older version did not store yet is empty."""
    plain = ("asked", "queries", "lang", "evidence", "draft", "drafted_by", "first_draft", "checks", "removed")
    known = {name: stored[name] for name in (*plain, "notes", "timings_ms", "waited_seconds") if name in stored}
    return Trace(
        **known,
        mode=Mode(stored["mode"]) if stored.get("mode") else None,
        zone=Zone(stored["zone"]) if stored.get("zone") else None,
        candidates=tuple(_candidate(one) for one in stored.get("candidates", [])),
        sources=tuple(_source(source) for source in stored.get("sources", [])),
    )


def _source(stored: Mapping[str, Any]) -> Source:
    return Source(**_known(stored, Source))


def _candidate(stored: Mapping[str, Any]) -> Candidate:
    topic = TopicScores(**stored["topic"]) if stored.get("topic") else None
    return Candidate(**{**_known(stored, Candidate), "topic": topic})


def _known(stored: Mapping[str, Any], kind: type[Source | Candidate]) -> dict[str, Any]:
    known = {field.name: stored[field.name] for field in fields(kind) if field.name in stored}
    return known | {"created_at": datetime.fromisoformat(stored["created_at"])}
