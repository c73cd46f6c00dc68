"""Queries of a forum's own database (docs/discourse, section 7); what the public doesn't see stays there."""

from typing import LiteralString

# The twin of service.ingest.eligibility.refusal, its verdicts in the same order; a NULL never makes anything public.
_REFUSAL: LiteralString = """
CASE
    WHEN posts.deleted_at IS NOT NULL THEN 'deleted'
    WHEN posts.user_deleted IS NOT FALSE THEN 'user_deleted'
    WHEN posts.hidden IS NOT FALSE THEN 'hidden'
    WHEN posts.post_type IS DISTINCT FROM 1 THEN 'post_type'
    WHEN topics.id IS NULL OR topics.deleted_at IS NOT NULL THEN 'topic_deleted'
    WHEN topics.visible IS NOT TRUE THEN 'topic_unlisted'
    WHEN topics.archetype IS DISTINCT FROM 'regular'
         AND NOT (%(banners)s AND topics.archetype IS NOT DISTINCT FROM 'banner') THEN 'archetype'
    WHEN categories.id IS NULL THEN 'category_unknown'
    WHEN categories.read_restricted IS NOT FALSE THEN 'category_private'
    WHEN posts.user_id <= 0 OR posts.user_id = ANY(%(bots)s) THEN 'bot_author'
    WHEN posts.user_id = ANY(%(opted_out)s) THEN 'opted_out'
END
"""

_POSTS: LiteralString = """
FROM posts LEFT JOIN topics ON topics.id = posts.topic_id LEFT JOIN categories ON categories.id = topics.category_id
"""

# Tags of a group that not everybody may see (group 0) are as private as a category.
_SEEN_TAGS: LiteralString = """
ARRAY(SELECT name FROM topic_tags JOIN tags ON tags.id = tag_id
      WHERE topic_id = topics.id AND NOT (tags.id = ANY(%(hidden_tags)s)) ORDER BY name)
"""
_ALL_TAGS: LiteralString = """
ARRAY(SELECT name FROM topic_tags JOIN tags ON tags.id = tag_id WHERE topic_id = topics.id ORDER BY tags.id)
"""

HIDDEN_TAGS: LiteralString = """
SELECT DISTINCT tag_id FROM tag_group_memberships AS member
WHERE NOT EXISTS (
    SELECT FROM tag_group_permissions AS may WHERE may.tag_group_id = member.tag_group_id AND group_id = 0
)
"""

HAS_TABLES: LiteralString = """
SELECT bool_and(to_regclass(name) IS NOT NULL) FROM unnest(%(tables)s::text[]) AS wanted (name)
"""

CATEGORIES: LiteralString = """
SELECT id, name, slug, parent_category_id, read_restricted FROM categories WHERE read_restricted IS FALSE
"""

USERNAMES: LiteralString = "SELECT id, username FROM users"

REFUSALS: LiteralString = "SELECT " + _REFUSAL + " AS refusal, count(*)" + _POSTS + "GROUP BY 1"

REFUSAL_OF_EACH: LiteralString = "SELECT posts.id, " + _REFUSAL + _POSTS + "ORDER BY posts.id"

PUBLIC_POSTS: LiteralString = (
    """
SELECT posts.id, posts.topic_id, posts.post_number, posts.post_type, posts.user_id, users.username, posts.cooked,
       posts.created_at, posts.updated_at, posts.reply_to_post_number, topics.title, topics.slug, topics.category_id,
       topics.archetype, topics.closed, topics.archived,
"""
    + _SEEN_TAGS
    + _POSTS
    + "LEFT JOIN users ON users.id = posts.user_id WHERE posts.id > %(after)s AND ("
    + _REFUSAL
    + ") IS NULL ORDER BY posts.id"
)

PUBLIC_AMONG: LiteralString = (
    "SELECT posts.id" + _POSTS + "WHERE posts.id = ANY(%(post_ids)s) AND (" + _REFUSAL + ") IS NULL"
)

PUBLIC_TOPICS_AMONG: LiteralString = """
SELECT topics.id FROM topics JOIN categories ON categories.id = topics.category_id
WHERE topics.id = ANY(%(topic_ids)s) AND topics.deleted_at IS NULL AND topics.visible IS TRUE
AND categories.read_restricted IS FALSE
AND (topics.archetype = 'regular' OR (%(banners)s AND topics.archetype = 'banner'))
"""

# By way of JSON, since versions differ in which of these columns they have.
DEFINITIONS: LiteralString = """
SELECT id, coalesce(to_jsonb(one) ->> 'display_name', ''), (to_jsonb(one) ->> 'dimensions')::integer,
       (to_jsonb(one) ->> 'max_sequence_length')::integer, (to_jsonb(one) ->> 'version')::integer,
       coalesce(to_jsonb(one) ->> 'embed_prompt', '')
FROM embedding_definitions AS one ORDER BY id
"""

_EMBEDDED: LiteralString = (
    _POSTS
    + """
JOIN ai_posts_embeddings AS made ON made.post_id = posts.id
WHERE made.model_id = %(model_id)s AND made.strategy_id = 1 AND made.strategy_version = 1
AND (%(model_version)s::integer IS NULL OR made.model_version = %(model_version)s) AND ("""
    + _REFUSAL
    + ") IS NULL"
)

EMBEDDED_TEXTS: LiteralString = (
    """
SELECT posts.id, made.digest, made.updated_at, posts.updated_at, topics.updated_at, topics.title, categories.name,
       posts.cooked,
"""
    + _SEEN_TAGS
    + ","
    + _ALL_TAGS
    + _EMBEDDED
    + " ORDER BY posts.id"
)

VECTORS: LiteralString = (
    "SELECT posts.id, made.embeddings::text" + _EMBEDDED + " AND posts.id = ANY(%(post_ids)s) ORDER BY posts.id"
)
