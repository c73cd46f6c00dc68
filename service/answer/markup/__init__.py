"""The model's Markdown as a tree of allowed constructs: read, cleaned, cut to length, written back."""
