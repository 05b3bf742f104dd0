"""`frostagent setup` and `init`: ask for what the service needs, and write `.env` and the OneBot
server's files.
"""
