"""Calibration: what the scores of a list tell, where the borders of the zones lie, and what they cost."""
