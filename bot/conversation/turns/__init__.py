"""A turn: what its model reads, how it runs, is suspended and closed, and its journal entries."""
