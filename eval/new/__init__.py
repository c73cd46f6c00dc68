"""Making a dataset of a forum's own: its archive, natural labels, questions to be judged, the manifest."""
