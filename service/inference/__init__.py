"""Adapter: the models that embed, rerank and answer."""
