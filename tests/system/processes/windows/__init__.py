"""A folder for PYTHONPATH, to imitate what Windows lacks."""
