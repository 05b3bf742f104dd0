"""A run's view of its conversation: quotations, forwards, pictures, voices, people by numbers."""
