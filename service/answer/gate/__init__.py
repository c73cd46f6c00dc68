"""The input gate: rules on what a message wants, matched before anything is searched for it."""
