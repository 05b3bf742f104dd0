"""OneBot, tested with captured frames and with real websockets."""
