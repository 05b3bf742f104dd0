"""`frostagent doctor`: checks everything the service needs, concurrently, and says how to fix each
problem.
"""
