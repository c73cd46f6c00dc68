"""The door the forum knocks at."""
