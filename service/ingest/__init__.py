"""Use case: keep the index equal to what an anonymous reader of the forum sees."""
