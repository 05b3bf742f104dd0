"""The operator's console in a browser: a listener of its own, logins, and the pages.

It shows the journal and makes the changes of its routes, no others: it runs no code, installs and
fetches nothing, reads no file that a path names, and changes no settings. The pages (`site.py`,
Jinja2) are loaded at the first request.
"""
