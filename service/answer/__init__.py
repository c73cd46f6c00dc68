"""Use case: answer one question from the forum's own posts."""
