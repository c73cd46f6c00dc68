"""Drafts a dataset from an operator's own index: its public posts, natural labels, questions to be judged."""

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.datasets.archive import ReadTopic, read_archive
from eval.datasets.folder import KNOWN_FILES, LABEL_FILES, MANIFEST, Manifest, name_of
from eval.datasets.labels import Found
from eval.domain import Labels
from eval.new.asked import Wanted, titles_as_questions
from eval.new.draft import Drafted, draft_yaml
from eval.new.export import PostKey, Progress, export_categories, export_topics, export_vectors, snapshot
from eval.new.files import write_found
from eval.new.manifest import write_manifest
from eval.new.natural import LanguageOf, accepted_labels, link_labels, site_of
from eval.new.pool import pool_candidates
from service.discourse.cooked import plain_text
from service.domain import Lang, TopicId
from service.errors import Misconfigured, Rejected
from service.wiring.answering import Answering

COMMON_PERCENT = 10
"""A language in which fewer of the first posts are is not one of the dataset's."""

LANGUAGE_SAMPLE = 500
"""Topics whose first posts tell the languages."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is wanted: `questions` empty means `titles` titles of topics; `depth` posts of each search for each.

    `archive` is an archive of the same forum with its HTML, which holds the links and accepted answers that the index
    doesn't keep.
    """

    out: Path
    archive: Path | None
    questions: Sequence[Wanted]
    titles: int
    depth: int


@dataclass(frozen=True, slots=True)
class Made:
    """What was written."""

    manifest: Manifest
    posts: int
    vectors: int
    links: int
    accepted: int
    questions: int
    notes: tuple[str, ...]


async def draft_dataset(at: Answering, order: Order, progress: Progress) -> Made:
    """Write the dataset, whole or not at all.

    Raises Rejected where a dataset is or none can be made, or on a bad archive, Misconfigured on an empty index.
    """
    check_free(order.out)
    out = order.out.resolve()
    part = out.with_name(f"{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
    except OSError as exc:
        raise _unwritable(order.out, exc) from exc
    try:
        made = await _draft(at, order, part, progress)
        out.mkdir(exist_ok=True)
        for file in part.iterdir():
            file.rename(out / file.name)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return made


def check_free(folder: Path) -> None:
    """Raises Rejected when the folder has a file of a dataset, or is none: nobody's judgements are written over."""
    try:
        there = [name for name in (*KNOWN_FILES, MANIFEST) if (folder / name).exists()]
        usable = folder.resolve().name and (folder.is_dir() or not folder.exists())
    except OSError as exc:
        raise _unwritable(folder, exc) from exc
    if there:
        raise Rejected(f"{folder / there[0]} is there already: choose another folder by --out")
    if not usable:
        raise Rejected(f"{folder}: no folder for a dataset: choose another by --out")


def _unwritable(folder: Path, exc: OSError) -> Rejected:
    return Rejected(f"{folder}: can't be written: {exc.strerror}: choose another folder by --out")


async def _draft(at: Answering, order: Order, folder: Path, progress: Progress) -> Made:
    topics = folder / "topics.jsonl.gz"
    async with snapshot(at.pool) as conn:
        posts = await export_topics(conn, topics, progress)
        if not posts:
            raise Misconfigured("the index shows the public nothing: fill it with `ariane backfill`")
        vectors = await export_vectors(conn, folder / "vectors.npz", at.embedder.profile, progress)
        wanted = order.questions or await titles_as_questions(conn, order.titles)
    export_categories(folder / "site.json", (await at.corpus.categories()).values())
    natural = _Natural(order.archive or topics, posts, at, progress)
    links = write_found(folder / LABEL_FILES[Labels.LINKS], natural.links())
    accepted = write_found(folder / LABEL_FILES[Labels.ACCEPTED], natural.accepted())
    drafted, notes = await _pooled(at, wanted, natural.language_of, order.depth, progress)
    draft = draft_yaml(drafted, at.settings.forum.base_url)
    (folder / LABEL_FILES[Labels.QUESTIONS]).write_text(draft, encoding="utf-8")
    manifest = write_manifest(folder, name=name_of(order.out), languages=natural.languages())
    return Made(manifest, len(posts), vectors, links, accepted, len(drafted), notes)


class _Natural:
    """The natural labels of an archive among the posts that the index shows, and the languages it is in."""

    def __init__(self, archive: Path, posts: frozenset[PostKey], at: Answering, progress: Progress) -> None:
        self._archive = archive
        self._posts = posts
        self._detect = at.stages.detect_language
        self._fallback = Lang(at.settings.forum.language)
        self._site = site_of(at.settings.forum.base_url)
        self._progress = progress
        self._spoken: Counter[str] = Counter()

    def language_of(self, text: str) -> str:
        return self._detect(text, fallback=self._fallback)

    def links(self) -> Iterator[Found]:
        return link_labels(self._read("links", listen=True), self._is_public, self.language_of, self._site)

    def accepted(self) -> Iterator[Found]:
        return accepted_labels(self._read("accepted answers"), self._is_public, self.language_of)

    def languages(self) -> list[str]:
        """Those of many first posts, the commonest first."""
        least = sum(self._spoken.values()) * COMMON_PERCENT / 100
        return [lang for lang, count in self._spoken.most_common() if count >= least] or [self._fallback]

    def _is_public(self, topic_id: TopicId, number: int) -> bool:
        return (topic_id, number) in self._posts

    def _read(self, step: str, *, listen: bool = False) -> Iterator[ReadTopic]:
        total = len({topic_id for topic_id, _ in self._posts})
        for done, read in enumerate(read_archive(self._archive), start=1):
            if listen and done <= LANGUAGE_SAMPLE and read.posts:
                self._spoken[self.language_of(f"{read.topic.title}\n{plain_text(read.posts[0].cooked)}")] += 1
            self._progress(step, done, max(done, total))
            yield read


async def _pooled(
    at: Answering, questions: Sequence[Wanted], language_of: LanguageOf, depth: int, progress: Progress
) -> tuple[list[Drafted], tuple[str, ...]]:
    drafted: list[Drafted] = []
    notes: dict[str, None] = {}
    for done, wanted in enumerate(questions, start=1):
        lang = wanted.lang or language_of(wanted.asked)
        pooled = await pool_candidates(wanted.asked, Lang(lang), at.stages, depth=depth)
        drafted.append(Drafted(wanted, lang, pooled.candidates))
        notes |= dict.fromkeys(pooled.notes)
        progress("questions", done, len(questions))
    return drafted, tuple(notes)
