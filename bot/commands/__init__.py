"""Commands in the chat, a file each: answered from the store, without a model or a lane."""
