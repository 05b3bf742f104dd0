"""Questions that wait: gathered from their lines, put off, and taken in order by their lanes."""
