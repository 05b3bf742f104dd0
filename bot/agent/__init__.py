"""The library's own rooms: agents, sessions, structured answers, tools that are programs."""
