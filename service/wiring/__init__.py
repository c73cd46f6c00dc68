"""The composition root: settings become the adapters behind every port; the only place that knows them all."""
