"""The files in `prompts/`: what a model is told, in each language that has its own, and the variants of it."""

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from jinja2 import ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined

from service.domain import ENGLISH, Lang
from service.errors import Misconfigured

DEFAULT = "default"
"""The variant of the prompt that is no folder of its own."""


def render(name: str, lang: Lang, variant: str, **values: object) -> str:
    """The template of this name as the variant has it, in this language, or in English where there are none in it.

    A template may ask for `lang`, the language itself.
    """
    known = lang if lang in languages() else ENGLISH
    return _templates(variant).get_template(f"{name}.{known}.j2").render(values, lang=lang)


@cache
def languages() -> frozenset[Lang]:
    """The languages that have prompts of their own; a variant adds none."""
    return frozenset(Lang(name.split(".")[1]) for name in template_texts(DEFAULT))


def variants() -> tuple[str, ...]:
    """The variants of the prompt: the default one first, then each folder of templates that stand before its own."""
    return (DEFAULT, *sorted(entry.name for entry in _folder().iterdir() if entry.is_dir()))


def known_variant(name: str) -> str:
    """The name; raises Misconfigured, naming those there are, where it is no variant's."""
    if name not in variants():
        raise Misconfigured(f"models.answerer.prompt_variant: no {name!r}; there are: {', '.join(variants())}")
    return name


def template_texts(variant: str) -> dict[str, str]:
    """The templates that a variant is made of, by their names in it: its own, and those of the default that it uses."""
    default = _texts(_folder())
    if known_variant(variant) == DEFAULT:
        return default
    own = _texts(_folder() / variant)
    told = "".join(own.values())
    extended = {path: text for name, text in default.items() if (path := f"{DEFAULT}/{name}") in told}
    return {**default, **own, **extended}


def _texts(folder: Traversable) -> dict[str, str]:
    return {one.name: one.read_text(encoding="utf-8") for one in folder.iterdir() if one.name.endswith(".j2")}


def _folder() -> Traversable:
    return files("service.answer") / "prompts"


@cache
def _templates(variant: str) -> Environment:
    """A template of a variant may include the default one that it stands before, as "default/..."."""
    default = PackageLoader("service.answer", "prompts")
    own = () if known_variant(variant) == DEFAULT else (PackageLoader("service.answer", f"prompts/{variant}"),)
    return Environment(
        loader=ChoiceLoader([*own, default, PrefixLoader({DEFAULT: default})]),
        autoescape=False,  # noqa: S701 # plain text for a model: escaping would change what it reads
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
