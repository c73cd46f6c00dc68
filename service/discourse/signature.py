"""The webhook signature: how a delivery is signed and how it is checked (docs/discourse, section 1)."""

import hashlib
import hmac
from collections.abc import Sequence

_PREFIX = "sha256="


def sign(secret: bytes, body: bytes) -> str:
    """The value of X-Discourse-Event-Signature: `sha256=` and the lower-case hex HMAC-SHA256 of the raw body."""
    return _PREFIX + hmac.new(secret, body, hashlib.sha256).hexdigest()


def is_signed(secrets: Sequence[bytes], body: bytes, header: str | None) -> bool:
    """Whether one of the secrets (two during a rotation) signed these bytes; compared in constant time.

    A blank secret signs nothing: Discourse sends unsigned deliveries when its own is blank.
    """
    if header is None:
        return False
    given = header.encode("utf-8", "replace")
    # Every secret is tried, so that the time tells nothing of which one fits.
    matches = [hmac.compare_digest(sign(secret, body).encode(), given) for secret in secrets if secret.strip()]
    return any(matches)
