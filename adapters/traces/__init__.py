"""The traces of runs, for those who want to follow one: lines of JSON in a file (LOG_RUNS),
OpenTelemetry spans.
"""
