"""The operator's console in a browser: a listener of its own, logins, and the pages.

It shows what the journal has and changes what its routes name, no more: it runs no code, installs,
fetches and reads nothing by a path, and sets no settings. The pages (`site.py`, Jinja2) are loaded
at the first request.
"""
