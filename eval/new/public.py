"""Which posts of an archive the public sees, by the rules of the index."""

from pathlib import Path

from eval.datasets.archive import read_archive
from eval.new.natural import IsPublic
from service.domain import TopicId
from service.ingest.archive import read_categories
from service.ingest.eligibility import IndexRules, refusal

NO_RULES = IndexRules(bots=frozenset(), index_banners=False)


def public_posts(archive: Path, site: Path) -> IsPublic:
    """Tells whether a post of this archive would be indexed under these categories; raises Rejected."""
    categories = {category.id: category for category in read_categories(site)}
    seen: set[tuple[TopicId, int]] = set()
    for read in read_archive(archive):
        topic = read.topic
        category = None if topic.category_id is None else categories.get(topic.category_id)
        seen.update(
            (topic.id, post.post_number) for post in read.posts if refusal(post, topic, category, NO_RULES) is None
        )
    return lambda topic_id, number: (topic_id, number) in seen
