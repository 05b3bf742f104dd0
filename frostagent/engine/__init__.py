"""The run: requests to the model, its tool calls, their results, until it ends."""
