"""Where the moderators' pages are, as their browsers see it."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from service.settings import ModerationSettings

MOUNT = "/moderation"
"""Where the web process has them; a proxy may put a path of its own before it."""


@dataclass(frozen=True, slots=True)
class Site:
    """`origin` is scheme, host and port; `root` is the path that every page's begins with."""

    origin: str
    root: str

    @property
    def secure(self) -> bool:
        return self.origin.startswith("https:")

    @property
    def return_url(self) -> str:
        """Where the forum sends back whoever signs in; the settings fix it, nothing of a request does."""
        return self.url("/sign-in/return")

    def url(self, path: str) -> str:
        """The whole address of a page, for outside of the pages."""
        return f"{self.origin}{self.root}{path}"


def site_of(settings: ModerationSettings) -> Site:
    """Where `public_url` says that the pages are; a proxy in front takes its path off again."""
    url = urlsplit(settings.public_url)
    # As a browser writes it in Origin: in lower case, and without the port that goes without saying.
    host = url.netloc.lower().removesuffix(":443" if url.scheme == "https" else ":80")
    return Site(f"{url.scheme}://{host}", f"{url.path}{MOUNT}")
