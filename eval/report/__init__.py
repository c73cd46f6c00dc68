"""A run as one page to read, HTML and Markdown: made for a forum's moderators, in French or English."""
