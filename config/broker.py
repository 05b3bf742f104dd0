"""The url of the broker between gateways and workers."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import SecretStr

from config import values


def url(value: SecretStr) -> SecretStr:
    """The url of a RabbitMQ: it may hold a password, so it is never shown. Empty where there is
    none.
    """
    text = value.get_secret_value()
    try:
        parts = urlsplit(text)
        is_one = parts.scheme in {"amqp", "amqps"} and bool(parts.hostname)
    except ValueError:
        is_one = False
    if text and not is_one:
        raise values.Wrong("is not the url of a RabbitMQ", "Write it as amqp://user:password@host/")
    return value
