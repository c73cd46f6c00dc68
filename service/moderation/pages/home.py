"""The first page: whether Ariane works, and what it did today."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from service.moderation.layout import page

router = APIRouter()


@router.get("/")
async def home(request: Request) -> HTMLResponse:
    return page(request, "home.html", title="home.title")
