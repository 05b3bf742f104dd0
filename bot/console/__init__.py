"""The operator's console: what its pages show of the bots, and what they change."""
