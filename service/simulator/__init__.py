"""A small forum that speaks enough of Discourse to run and watch the whole loop."""
