"""One module per revision, oldest first; published ones never change."""
