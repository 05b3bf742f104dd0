"""Commands in the chat, one file each: answered without a model or a lane."""
