"""The text the model reads: messages of people rendered as lines, and the transcript a run begins
with. Pure.
"""
