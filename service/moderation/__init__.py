"""The moderators' pages, behind the forum's own sign-in: what Ariane did, what it may do, and who decided it."""
