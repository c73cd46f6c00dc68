"""The demo forum as a dataset of our own writing; `python -m eval.demo` makes again what the forum itself gives."""

from pathlib import Path

FOLDER = Path(__file__).parent
