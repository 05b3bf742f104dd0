"""The operator's word list, as a file."""
