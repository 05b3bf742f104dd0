"""The `Web` port on httpx: fetches public web resources for tools."""
