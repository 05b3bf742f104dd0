"""What is decided about events, people and texts: pure functions over frozen rules."""
