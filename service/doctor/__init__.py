"""What is wrong with an installation, and how to mend it: small checks over its parts, none of which raises."""
