"""`python -m eval.demo`: make the demo's dataset again from the demo forum, and its manifest."""

from eval.demo import FOLDER
from eval.demo.build import build_demo

if __name__ == "__main__":
    build_demo(FOLDER)
