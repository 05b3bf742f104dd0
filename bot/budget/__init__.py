"""Daily limits on requests to models, and the usage so far."""
