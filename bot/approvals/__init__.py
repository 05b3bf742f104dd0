"""Pending decisions of owners: tool calls, join requests, drafts and new groups."""
