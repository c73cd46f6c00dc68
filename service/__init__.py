"""Ariane: a bot for Discourse forums that guides members to the threads that answer."""
