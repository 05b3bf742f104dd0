"""The words of the engine: messages, tools, runs, errors; frozen."""
