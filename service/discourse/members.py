"""What the forum says of one of its members."""

from service.discourse.shapes import Fields, fields_of

_MAX_TRUST_LEVEL = 4


def groups_from_json(value: object) -> frozenset[str]:
    """The names of a member's groups in the answer of `/u/NAME.json`; raises Rejected for another shape.

    The forum may leave out the automatic ones, which his trust level and rank tell.
    """
    user = fields_of(fields_of(value, "user").get("user"), "user.user")
    listed = user.get("groups")
    named = [entry.get("name") for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return frozenset(name for name in named if isinstance(name, str)) | _automatic(user)


def _automatic(user: Fields) -> frozenset[str]:
    level = user.get("trust_level")
    levels = range(min(level, _MAX_TRUST_LEVEL) + 1) if isinstance(level, int) and level >= 0 else range(0)
    ranks = {name for name, field in (("admins", "admin"), ("moderators", "moderator")) if user.get(field) is True}
    return frozenset({*(f"trust_level_{one}" for one in levels), *ranks, *({"staff"} if ranks else ())})
