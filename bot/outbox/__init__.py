"""The way out: words to sends, sends to rows, rows to the socket; and lines for the owner."""
