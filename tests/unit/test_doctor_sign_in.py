"""The doctor on the moderators' way in."""

import pytest

from service.doctor.check import Status
from service.doctor.patient import Patient, utc_now
from service.doctor.sign_in import sign_in
from service.errors import Transient
from service.settings import Settings

SECRET = "shared-by-the-forum-and-us"


@pytest.mark.parametrize(
    ("forum", "public_url", "secret", "status", "detail"),
    [
        ("https://forum.example", "https://ariane.example", SECRET, Status.OK, "at https://ariane.example"),
        ("http://127.0.0.1:4200", "http://127.0.0.1:4300", SECRET, Status.OK, "127.0.0.1"),
        ("https://forum.example", "https://ariane.example", "", Status.WARN, "nobody signs in"),
        ("https://forum.example", "http://localhost:4300", SECRET, Status.WARN, "only this machine"),
        ("https://forum.example", "http://[::1]:4300", SECRET, Status.WARN, "only this machine"),
        ("https://forum.example", "http://ariane.example", SECRET, Status.WARN, "on the way"),
        ("https://forum.example", "http://10.0.0.7", SECRET, Status.WARN, "on the way"),
    ],
)
async def test_how_moderators_sign_in(forum: str, public_url: str, secret: str, status: Status, detail: str) -> None:
    settings = Settings.model_validate(
        {"forum": {"base_url": forum}, "moderation": {"public_url": public_url, "connect_secret": secret}}
    )
    made = await sign_in(Patient(settings, Transient("no database"), Transient("no models"), utc_now))
    assert made.status is status
    assert detail in made.detail
