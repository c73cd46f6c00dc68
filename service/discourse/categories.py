"""Reading a forum's categories, wherever it gives them."""

from collections.abc import Awaitable, Callable

from service.discourse.shapes import Fields, categories_from_json
from service.domain import Category, CategoryId
from service.errors import Rejected
from service.remote import Params

MAX_CATEGORY_PAGES = 50

Get = Callable[[str, Params | None], Awaitable[Fields | None]]
"""One read of the forum's API: the object that it gives, None where it shows nothing."""


async def read_categories(get: Get) -> list[Category] | None:
    """The categories that this reader sees, None where the forum shows him nothing; what is missing is private.

    Raises Rejected for an answer that can't be used.
    """
    value = await get("site.json", None)
    if value is None:
        return None
    found = categories_from_json(value)
    if found:
        return found
    # A forum that loads categories lazily leaves them out of site.json and gives them in pages.
    known: dict[CategoryId, Category] = {}
    for page in range(1, MAX_CATEGORY_PAGES + 1):
        value = await get("categories.json", {"include_subcategories": "true", "page": page})
        if value is not None and "category_list" not in value:  # taken for "none", it would empty the index
            raise Rejected("categories: expected a category_list")
        fresh = {} if value is None else {one.id: one for one in categories_from_json(value) if one.id not in known}
        if not fresh:
            break
        known |= fresh
    return list(known.values())
