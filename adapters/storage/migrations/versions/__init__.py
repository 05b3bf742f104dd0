"""One module for each revision, oldest first; what is published is never changed."""
