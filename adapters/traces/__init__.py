"""Traces of runs: JSON lines in a file (LOG_RUNS), and OpenTelemetry spans."""
