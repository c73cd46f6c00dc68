"""Adapter: what Discourse sends and what it answers."""
