"""DiscourseConnect, with the forum as the provider of identities: what is sent to it and what it says (section 8)."""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from service.domain import UserId
from service.errors import Rejected

MAX_CHARS = 16_384
"""A longer payload is not read; a member of a hundred groups has one of some 2,000."""

MAX_FIELDS = 200
MAX_ID_DIGITS = 19
"""As many make a number that Postgres may not hold."""

_FORBIDDEN = 403


@dataclass(frozen=True, slots=True)
class Identity:
    """Who came back from the forum, to which sign-in, and what he is there at this moment."""

    nonce: str
    user_id: UserId
    username: str
    admin: bool
    moderator: bool
    groups: frozenset[str]


def signature(secret: bytes, payload: str) -> str:
    """The lower-case hex HMAC-SHA256 of a payload as it is sent, in base64."""
    return hmac.new(secret, payload.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def request_url(base_url: str, secret: bytes, *, nonce: str, return_url: str, logout: bool = False) -> str:
    """The forum's address that says who someone is, and sends him to `return_url`; or signs him out there first."""
    fields = {"nonce": nonce, "return_sso_url": return_url} | ({"logout": "true"} if logout else {})
    payload = base64.b64encode(urlencode(fields).encode()).decode()
    return f"{base_url}/session/sso_provider?{urlencode({'sso': payload, 'sig': signature(secret, payload)})}"


def read_identity(sso: str, sig: str, secret: bytes, *, return_url: str) -> Identity:
    """Who the forum says this is; raises Rejected (403) for what it didn't sign, and (400) for what it wouldn't say.

    Nothing is read before its signature fits. A blank secret signs nothing. The nonce is still to be checked.
    """
    if not secret.strip():
        raise Rejected("sign-in: there is no secret to check it with", status=_FORBIDDEN)
    fits = hmac.compare_digest(signature(secret, sso).encode(), sig.encode("utf-8", "surrogatepass"))
    if len(sso) > MAX_CHARS or not fits:
        raise Rejected("sign-in: this is not signed by the forum", status=_FORBIDDEN)
    fields = _fields(sso)
    if fields.get("return_sso_url") != return_url:
        raise Rejected("sign-in: this was meant for another address", status=_FORBIDDEN)
    if _flag(fields, "failed") or _flag(fields, "logout"):
        raise Rejected("sign-in: the forum did not sign this member in", status=_FORBIDDEN)
    user_id = _text(fields, "external_id")
    if not (user_id.isascii() and user_id.isdecimal() and len(user_id) < MAX_ID_DIGITS and int(user_id) > 0):
        raise Rejected("sign-in: external_id is no account of the forum")
    return Identity(
        nonce=_text(fields, "nonce"),
        user_id=UserId(int(user_id)),
        username=_text(fields, "username"),
        admin=_flag(fields, "admin"),
        moderator=_flag(fields, "moderator"),
        groups=frozenset(name for name in fields.get("groups", "").split(",") if name),
    )


def _fields(sso: str) -> dict[str, str]:
    try:
        decoded = base64.b64decode(sso, validate=True).decode("ascii")
        pairs = parse_qsl(
            decoded, keep_blank_values=True, strict_parsing=True, max_num_fields=MAX_FIELDS, errors="strict"
        )
    except (binascii.Error, ValueError) as exc:  # both decodings raise a kind of ValueError
        raise Rejected("sign-in: the forum's answer can't be read") from exc
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise Rejected("sign-in: the forum's answer says something twice")
    return fields


def _text(fields: dict[str, str], name: str) -> str:
    if not (value := fields.get(name, "")):
        raise Rejected(f"sign-in: the forum's answer has no {name}")
    return value


def _flag(fields: dict[str, str], name: str) -> bool:
    match fields.get(name):
        case "true":
            return True
        case "false" | None:
            return False
    raise Rejected(f"sign-in: {name} is neither true nor false")
