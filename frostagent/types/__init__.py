"""The engine's vocabulary: messages, tools, runs and errors. All values are frozen."""
