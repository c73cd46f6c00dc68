"""Whole answers, the gate and safety probes, run through the production pipeline as a member would meet it."""
