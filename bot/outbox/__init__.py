"""Outgoing messages: from text to messages, to rows, to the socket; and alerts to owners."""
