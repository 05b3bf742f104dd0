"""The words everybody speaks: frozen data, no I/O, no logging; imports only the standard library
and pydantic.
"""
