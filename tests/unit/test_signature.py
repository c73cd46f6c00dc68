"""The webhook signature accepts what a holder of a secret signed, and nothing else."""

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.discourse.signature import is_signed, sign

SECRET = b"a secret of the forum"
BODY = '{"ping":"OK", "é": 1}\n'.encode()


def test_signs_as_the_standard_library_says() -> None:
    assert sign(SECRET, BODY) == "sha256=" + hmac.new(SECRET, BODY, hashlib.sha256).hexdigest()


def test_known_value() -> None:
    """RFC 4231, test case 2."""
    digest = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert sign(b"Jefe", b"what do ya want for nothing?") == f"sha256={digest}"


def test_either_secret_of_a_rotation_is_good() -> None:
    header = sign(SECRET, BODY)
    assert is_signed([SECRET], BODY, header)
    assert is_signed([b"the next secret", SECRET], BODY, header)
    assert is_signed([SECRET, b"the next secret"], BODY, header)
    assert not is_signed([b"the next secret"], BODY, header)


@pytest.mark.parametrize("secrets", [[], [b""], [b"   "], [b"\n", b""]])
def test_without_a_secret_nothing_is_signed(secrets: list[bytes]) -> None:
    assert not is_signed(secrets, BODY, sign(secrets[0] if secrets else b"", BODY))


GOOD = sign(SECRET, BODY)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "sha256=",
        GOOD.removeprefix("sha256="),
        GOOD.upper(),
        "sha256=" + GOOD.removeprefix("sha256=").upper(),
        GOOD.replace("sha256", "sha1"),
        GOOD[:-1],
        GOOD + "0",
        GOOD + " ",
        " " + GOOD,
        GOOD + "," + GOOD,
        "sha256=é" + GOOD[8:],
        "sha256=\ud800",
        "sha256=" + "０" * 64,
    ],
)
def test_odd_headers_are_refused(header: str | None) -> None:
    assert not is_signed([SECRET], BODY, header)


def test_the_exact_bytes_count() -> None:
    assert not is_signed([SECRET], BODY.rstrip(), GOOD)
    assert not is_signed([SECRET], BODY.replace(b", ", b","), GOOD)


@given(st.binary(), st.binary(min_size=1), st.text())
def test_no_header_makes_it_raise_or_pass(body: bytes, secret: bytes, header: str) -> None:
    assert not is_signed([secret], body, header)


@given(st.binary(), st.binary(), st.binary(min_size=12).filter(lambda secret: bool(secret.strip())))
def test_a_signature_fits_one_body_only(body: bytes, other: bytes, secret: bytes) -> None:
    assert is_signed([secret], body, sign(secret, body))
    assert is_signed([secret], other, sign(secret, body)) == (body == other)
