"""Reads an answer's body, bounded in size whatever its encoding makes of it (a gzip bomb grows a thousandfold)."""

import zlib

import httpx

MAX_ANSWER_BYTES = 8_000_000
"""A larger answer is not read to its end: nothing that we ask for comes near."""
ACCEPTED = "gzip"
"""The one Accept-Encoding of our requests: others, or several of them on one body, can't be unpacked within a bound."""

_GZIP_WINDOW_BITS = 31


def encoding_of(response: httpx.Response) -> str:
    """The Content-Encoding, empty where there is none."""
    named: str = response.headers.get("content-encoding", "")
    return "" if (said := named.strip().lower()) == "identity" else said


async def first_bytes(response: httpx.Response) -> bytes:
    """The body as far as MAX_ANSWER_BYTES and one byte more, so that a longer one shows.

    Raises httpx.DecodingError for an encoding that we did not ask for, and for one that is broken.
    """
    encoding = encoding_of(response)
    if encoding not in ("", ACCEPTED):
        raise httpx.DecodingError(f"the encoding {encoding[:40]!r} was not asked for")
    unpacked = zlib.decompressobj(_GZIP_WINDOW_BITS) if encoding else None
    content = bytearray()
    async for chunk in response.aiter_raw():
        try:
            content += unpacked.decompress(chunk, MAX_ANSWER_BYTES + 1 - len(content)) if unpacked else chunk
        except zlib.error as exc:
            raise httpx.DecodingError(str(exc)) from exc
        if len(content) > MAX_ANSWER_BYTES:
            break
    return bytes(content[: MAX_ANSWER_BYTES + 1])
