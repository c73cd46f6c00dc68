"""The last stage: a draft becomes the text of an answer, or gives way to the list of its sources."""

from collections import Counter
from collections.abc import Sequence

from service.answer.abstain import asked, with_new_topic
from service.answer.checking import Written
from service.answer.markup.audit import faults
from service.answer.markup.links import links
from service.answer.messages import Message, message
from service.answer.sanitize import LONGEST_POST, clean, sanitize
from service.domain import Answer, Question, Result, Source, Trace, Zone

NEAREST_THREADS = 3

RESERVED_CHARS = 1_000
"""Left of the forum's limit for what is put after an answer: its notes and its footer."""


def warm_up() -> None:
    """Compile the patterns that the first draft would compile."""
    faults(clean("See a::b, example.org and a@example.org [[1]].", sources=1), set())


def finish(question: Question, written: Written, zone: Zone, trace: Trace, *, base_url: str, seed: int) -> Answer:
    """The sanitized draft; without one that cites, the list of sources; in the weak zone after the caution.

    Where drafts were written and none held, the limit is told.
    """
    draft, sources = written.draft, written.sources
    if written.limit:
        return _limit(question, sources, zone, trace, base_url=base_url, seed=seed)
    caution = message(Message.CAUTION, question.lang, seed) if zone is Zone.WEAK else ""
    if draft:
        longest = LONGEST_POST - RESERVED_CHARS
        sanitized = sanitize(
            draft.text,
            sources if draft.shown is None else sources[: len(draft.shown)],
            zone=zone,
            base_url=base_url,
            lang=draft.lang,
            caution=caution,
            prompt=draft.prompt,
            longest=longest,
        )
        counts = Counter(trace.removed) + Counter(sanitized.removed)  # the check may have cleaned it before
        trace.removed = {kind: counts[kind] for kind in sorted(counts)}
        if sanitized.post is not None:
            return Answer(Result.ANSWERED, sanitized.post, zone, trace.mode, sources, sanitized.cited)
    trace.notes.append("sources_alone")
    text = "\n\n".join(filter(None, (caution, _source_list(question, sources, base_url, seed))))
    return Answer(Result.ANSWERED, text, zone, trace.mode, sources, tuple(source.n for source in sources))


def _limit(
    question: Question, sources: tuple[Source, ...], zone: Zone, trace: Trace, *, base_url: str, seed: int
) -> Answer:
    """What is said in place of drafts that didn't hold: so, and the nearest threads; nothing of the drafts."""
    nearest = sources[:NEAREST_THREADS]
    intro = message(Message.LIMIT, question.lang, seed, question=asked(question))
    text = with_new_topic(f"{intro}\n\n{_link_list(nearest, base_url)}", question, base_url, seed=seed)
    return Answer(Result.ABSTAINED, text, zone, trace.mode, sources, tuple(source.n for source in nearest))


def _source_list(question: Question, sources: tuple[Source, ...], base_url: str, seed: int) -> str:
    intro = message(Message.SOURCES_INTRO, question.lang, seed, question=asked(question))
    return f"{intro}\n\n{_link_list(sources, base_url)}"


def _link_list(sources: Sequence[Source], base_url: str) -> str:
    return "\n".join(f"- {links(source.n, source, base_url)[0]}" for source in sources)
