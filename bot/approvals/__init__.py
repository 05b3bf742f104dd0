"""What waits for an owner's decision: calls of tools, join requests, drafts and new groups."""
