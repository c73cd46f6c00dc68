"""Addresses of databases, checked before they are used: what is wrong with one is said without quoting it."""

import psycopg
from psycopg.conninfo import conninfo_to_dict

from service.errors import Misconfigured


def check_address(url: str, setting: str) -> None:
    """Raise Misconfigured, naming the setting, for what libpq can't read or would read otherwise than it was meant.

    Its own words quote the address, and with it the password; so does a failed look-up of a host that begins with the
    end of a password that has an "@" in it.
    """
    try:
        host = conninfo_to_dict(url).get("host")
    except psycopg.ProgrammingError:
        host = "@"
    if "@" in str(host or ""):
        raise Misconfigured(
            f"{setting} can't be used: it must be like postgresql://user:password@host/name, with %40 for an @ in the"
            " password, and so on"
        ) from None
