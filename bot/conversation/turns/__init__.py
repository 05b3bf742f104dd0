"""A turn, prepared, run, suspended and closed; how it begins and ends in the journal."""
