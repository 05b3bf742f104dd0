"""Model selection, prices, and the client."""
