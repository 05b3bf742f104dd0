"""Parts put together for `app.py`: the service, the models, the tools, the subagents, the media."""
