"""All that reaches into a turn from outside: words for it, a stop, a mute, a recall, a time that is
up, somebody forgotten.
"""
