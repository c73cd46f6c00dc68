"""Adapter: Postgres, one function a query, named by the question it answers."""
