"""Whole requests as a model reads them, one in each language: what is changed in the words of the prompt shows here."""
