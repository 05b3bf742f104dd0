"""Media: outgoing files and public URLs, checked; received files on their way to a model."""
