"""Questions that want judging: from a person's list, or titles of topics to start from."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from eval.datasets.parsing import Entry, History, Language, Line, Name, Text, checked, read_text, yaml_items
from service.errors import Rejected
from service.store.pool import Connection

MAX_QUESTIONS = 2_000

_TITLES = """
SELECT topic_id, title FROM topics
WHERE (SELECT count(*) FROM public_posts WHERE public_posts.topic_id = topics.topic_id) > 1
ORDER BY md5(topic_id::text) LIMIT %s
"""


class Wanted(Entry):
    """A question to be judged: an item of questions.yml without its golden; an id is given where it has none."""

    id: Name = ""
    slice: Name = "paraphrase"
    lang: Language | None = None
    question: Text
    history: History = Field(default_factory=list)
    standalone: Text | None = None
    note: Line = ""

    @property
    def asked(self) -> str:
        """What to search for."""
        return self.standalone or self.question


def read_questions(path: Path) -> list[Wanted]:
    """A YAML list of questions, or plain text with one a line; raises Rejected saying what is wrong where."""
    wanted: list[Wanted] = []
    taken: set[str] = set()
    for where, one in yaml_items(path, Wanted) if path.suffix in (".yml", ".yaml") else _lines(path):
        named = one if one.id else one.model_copy(update={"id": f"q{len(wanted) + 1:03d}"})
        if named.id in taken:
            raise Rejected(f"{where}: the id {named.id!r} is there twice")
        if len(wanted) == MAX_QUESTIONS:
            raise Rejected(f"{where}: more than {MAX_QUESTIONS:,} questions")
        taken.add(named.id)
        wanted.append(named)
    if not wanted:
        raise Rejected(f"{path}: no question in it")
    return wanted


def _lines(path: Path) -> Iterator[tuple[str, Wanted]]:
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        where = f"{path}, line {number}"
        if line.strip():
            yield where, checked({"question": line.strip()}, Wanted, where)


async def titles_as_questions(conn: Connection, count: int) -> list[Wanted]:
    """Titles of topics that have replies, always the same ones."""
    cursor = await conn.execute(_TITLES, (count,))
    return [
        Wanted(
            id=f"title-{topic_id}",
            slice="title",
            question=title,
            note=f"the title of topic {topic_id}: ask it in other words, or finding it tells nothing",
        )
        async for topic_id, title in cursor
        if title.strip()
    ]
