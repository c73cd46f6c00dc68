"""Our posts, read by programs that others wrote."""
