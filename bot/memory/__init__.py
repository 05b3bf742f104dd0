"""The history of a conversation, its summaries, and who writes a run into the journal."""
