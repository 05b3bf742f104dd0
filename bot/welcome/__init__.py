"""What is said when people join a group, or leave it."""
