"""Check of the moderators' way in: a secret shared with the forum, and an address that their browsers reach."""

import ipaddress
from urllib.parse import urlsplit

from service.doctor.check import Finding, ok, warn
from service.doctor.patient import Patient

CONNECT_MEND = (
    "Turn enable_discourse_connect_provider on at the forum, add our host and a random secret to "
    "discourse_connect_provider_secrets, and give the same as ARIANE_MODERATION__CONNECT_SECRET. Until then: "
    "`ariane signin-link`."
)
URL_MEND = "Set moderation.public_url to the https:// address under which moderators reach the web process."


async def sign_in(patient: Patient) -> Finding:
    """Moderators can sign in by the forum, at an address that is not only this machine's."""
    settings = patient.settings.moderation
    if not settings.connect_secret.get_secret_value():
        return warn("moderation.connect_secret is empty: nobody signs in by the forum", CONNECT_MEND)
    url = urlsplit(settings.public_url)
    if _local(url.hostname) and not _local(urlsplit(patient.settings.forum.base_url).hostname):
        return warn(f"moderation.public_url is {settings.public_url}, which only this machine reaches", URL_MEND)
    if url.scheme != "https" and not _local(url.hostname):
        return warn(f"moderation.public_url is {settings.public_url}: sessions can be read on the way", URL_MEND)
    return ok(f"by the forum, at {settings.public_url}")


def _local(host: str | None) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False
