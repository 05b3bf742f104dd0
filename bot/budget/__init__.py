"""What requests to models may cost in a day, and what they took."""
