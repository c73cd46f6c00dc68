"""The sub-commands of `ariane`, one module each, imported only when called."""
