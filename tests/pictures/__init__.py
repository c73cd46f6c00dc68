"""The pictures of the guides: staged on the demo forum, taken by headless Chromium, made small; `make pictures`."""
