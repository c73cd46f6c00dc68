"""How good Ariane is on a forum: datasets, systems under test, measures, calibration, reports. Imports service only."""
