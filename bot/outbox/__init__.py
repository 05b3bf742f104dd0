"""The way out: text to messages, messages to rows, rows to the socket; and alerts to owners."""
