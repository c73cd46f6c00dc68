"""Makes a follow-up one question that stands alone (spec P6)."""
