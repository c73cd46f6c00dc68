"""DiscourseConnect's payloads: what the forum signed is read, and nothing else."""

import base64
import contextlib
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.discourse.connect import MAX_CHARS, Identity, read_identity, request_url, signature
from service.domain import UserId
from service.errors import Rejected

SECRET = b"a secret of the forum and us"
RETURN = "https://ariane.example/moderation/sign-in/return"
SAID = {
    "nonce": "n0nce",
    "return_sso_url": RETURN,
    "external_id": "12",
    "username": "Zoé",
    "name": "Zoé Z",
    "email": "zoe@forum.example",
    "admin": "false",
    "moderator": "true",
    "groups": "moderators,staff,trust_level_4",
}


def packed(fields: dict[str, str] | list[tuple[str, str]] | bytes) -> tuple[str, str]:
    plain = fields if isinstance(fields, bytes) else urlencode(fields).encode()
    sso = base64.b64encode(plain).decode()
    return sso, signature(SECRET, sso)


def test_the_forum_says_who_came_back() -> None:
    said = read_identity(*packed(SAID), SECRET, return_url=RETURN)
    groups = frozenset({"moderators", "staff", "trust_level_4"})
    assert said == Identity("n0nce", UserId(12), "Zoé", admin=False, moderator=True, groups=groups)


def test_the_signature_is_the_one_of_the_published_example() -> None:
    # meta.discourse.org, "Setup DiscourseConnect": this payload and secret give this signature.
    payload = "bm9uY2U9Y2I2ODI1MWVlZmI1MjExZTU4YzAwZmYxMzk1ZjBjMGI=\n"
    assert signature(b"d836444a9e4084d5b224a60c208dce14", payload) == (
        "2828aa29899722b35a2f191d34ef9b3ce695e0e6eeec47deb46d588d70c7cb56"
    )


def test_the_request_carries_nonce_and_return_address_signed() -> None:
    url = request_url("https://forum.example/sub", SECRET, nonce="n", return_url=RETURN)
    sent = parse_qs(urlsplit(url).query)
    assert url.startswith("https://forum.example/sub/session/sso_provider?")
    assert sent["sig"] == [signature(SECRET, sent["sso"][0])]
    assert dict(parse_qsl(base64.b64decode(sent["sso"][0]).decode())) == {"nonce": "n", "return_sso_url": RETURN}
    out = parse_qs(urlsplit(request_url("https://f.example", SECRET, nonce="n", return_url=RETURN, logout=True)).query)
    assert dict(parse_qsl(base64.b64decode(out["sso"][0]).decode()))["logout"] == "true"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"return_sso_url": "https://elsewhere.example/"}, 403),
        ({"return_sso_url": RETURN + "/"}, 403),
        ({"failed": "true"}, 403),
        ({"logout": "true"}, 403),
        ({"external_id": ""}, 400),
        ({"external_id": "-1"}, 400),
        ({"external_id": "0"}, 400),
        ({"external_id": "9" * 19}, 400),
        ({"external_id": "٣"}, 400),
        ({"username": ""}, 400),
        ({"nonce": ""}, 400),
        ({"admin": "True"}, 400),
        ({"moderator": "1"}, 400),
    ],
)
def test_a_signed_answer_that_says_too_little_or_something_else_is_refused(change: dict[str, str], status: int) -> None:
    with pytest.raises(Rejected) as caught:
        read_identity(*packed(SAID | change), SECRET, return_url=RETURN)
    assert caught.value.status == status


def test_an_answer_without_a_return_address_is_refused() -> None:
    fields = {name: value for name, value in SAID.items() if name != "return_sso_url"}
    with pytest.raises(Rejected):
        read_identity(*packed(fields), SECRET, return_url=RETURN)


def test_something_said_twice_is_refused() -> None:
    with pytest.raises(Rejected, match="twice"):
        read_identity(*packed([*SAID.items(), ("admin", "true")]), SECRET, return_url=RETURN)


@pytest.mark.parametrize("secret", [b"", b"   ", b"another secret"])
def test_another_secret_or_none_lets_nobody_in(secret: bytes) -> None:
    sso, _ = packed(SAID)
    with pytest.raises(Rejected) as caught:
        read_identity(sso, signature(secret, sso), secret if not secret.strip() else SECRET, return_url=RETURN)
    assert caught.value.status == 403


@pytest.mark.parametrize("plain", [b"\xff\xfe", b"nonce", b"%ff=1&nonce=1", b"=" * 300, b"&" * 300])
def test_signed_rubbish_is_refused(plain: bytes) -> None:
    with pytest.raises(Rejected):
        read_identity(*packed(plain), SECRET, return_url=RETURN)


def test_a_payload_longer_than_any_member_has_is_refused() -> None:
    sso, sig = packed(SAID | {"name": "x" * MAX_CHARS})
    with pytest.raises(Rejected):
        read_identity(sso, sig, SECRET, return_url=RETURN)


@given(sso=st.text(), sig=st.text())
def test_nothing_unsigned_is_read_whatever_it_is(sso: str, sig: str) -> None:
    with pytest.raises(Rejected) as caught:
        read_identity(sso, sig, SECRET, return_url=RETURN)
    assert caught.value.status == 403


@given(st.binary(max_size=300))
def test_signed_bytes_are_read_or_refused(plain: bytes) -> None:
    with contextlib.suppress(Rejected):
        read_identity(*packed(plain), SECRET, return_url=RETURN)


@given(sso=st.text(alphabet="ABCDabcd0123+/=\n é\ud800", max_size=60))
def test_signed_text_is_read_or_refused(sso: str) -> None:
    with contextlib.suppress(Rejected):
        read_identity(sso, signature(SECRET, sso), SECRET, return_url=RETURN)


text = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)


@given(
    nonce=text,
    username=text,
    user_id=st.integers(1, 10**18 - 1),
    admin=st.booleans(),
    moderator=st.booleans(),
    groups=st.frozensets(st.text("abc_é-. &=", min_size=1)),
)
def test_what_was_said_is_what_is_read(
    nonce: str, username: str, user_id: int, admin: bool, moderator: bool, groups: frozenset[str]
) -> None:
    fields = SAID | {
        "nonce": nonce,
        "username": username,
        "external_id": str(user_id),
        "admin": str(admin).lower(),
        "moderator": str(moderator).lower(),
        "groups": ",".join(groups),
    }
    said = read_identity(*packed(fields), SECRET, return_url=RETURN)
    assert (said.nonce, said.username, said.user_id) == (nonce, username, user_id)
    assert (said.admin, said.moderator, said.groups) == (admin, moderator, groups)
