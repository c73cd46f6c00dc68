"""The settings as the code has them; `python -m tests.settings_table` writes their table into docs/settings.md."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from service.settings import Settings

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"
BEGIN, END = "<!-- the table: python -m tests.settings_table -->\n", "<!-- end of the table -->\n"
HEAD = "| setting | default | what it is |\n|---|---|---|\n"


def settings_of(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every setting by its dotted name."""
    for name, field in model.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from settings_of(annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field


def with_table(page: str) -> str:
    """The page with the present table between its marks; raises ValueError without them."""
    before, _ = page.split(BEGIN)
    _, after = page.split(END)
    rows = "".join(f"| `{name}` | {_default(one)} | {one.description} |\n" for name, one in settings_of(Settings))
    return f"{before}{BEGIN}\n{HEAD}{rows}\n{END}{after}"


def _default(field: FieldInfo) -> str:
    value = field.default
    if field.default_factory is not None:
        return "the user's data directory"
    if isinstance(value, SecretStr) or value in ((), "", {}):
        return "(none)"
    if isinstance(value, tuple):
        value = ", ".join(value)
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
