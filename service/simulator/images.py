"""The pictures a page needs, drawn as SVG: letter avatars, emoji, category colours."""

import re
from html import escape
from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import Response

from service.simulator import emoji
from service.simulator.refusals import not_found

Colour = Annotated[str, Path(pattern=r"^[0-9A-Fa-f]{6}$")]
router = APIRouter()
_FONT = "font-family='system-ui, sans-serif' text-anchor='middle' dominant-baseline='central'"


def _svg(inner: str) -> Response:
    text = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 48 48'>{inner}</svg>"
    headers = {"Cache-Control": "public, max-age=86400"}
    return Response(text, media_type="image/svg+xml", headers=headers)


@router.get("/letter_avatar_proxy/v4/letter/{letter}/{colour}/{size}.png")
async def letter_avatar(letter: str, colour: Colour, size: int) -> Response:
    shown = escape(letter[:1].upper())
    return _svg(
        f"<rect width='48' height='48' fill='#{colour}'/>"
        f"<text x='24' y='25' font-size='26' fill='#fff' {_FONT}>{shown}</text>"
    )


@router.get("/images/emoji/twitter/{name}.png")
async def emoji_image(name: str) -> Response:
    char = emoji.character(name) if re.fullmatch(r"[a-z0-9_+-]{1,40}", name) else None
    if char is None:
        raise not_found()
    return _svg(f"<text x='24' y='26' font-size='38' {_FONT}>{char}</text>")


@router.get("/simulator-colour/{colour}.svg")
async def colour_square(colour: Colour) -> Response:
    return _svg(f"<rect width='48' height='48' rx='8' fill='#{colour}'/>")
