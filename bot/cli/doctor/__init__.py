"""`frostagent doctor`: looks at all that the service needs, side by side; says what is wrong and
how to mend it.
"""
