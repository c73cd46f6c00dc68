"""Deployment: the image, the compose file, the manifests and the monitoring, checked without a cluster."""
