"""The sub-commands of `python -m eval`, one module each."""
