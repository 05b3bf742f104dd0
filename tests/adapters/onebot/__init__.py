"""OneBot, tested with the corpus where it lies beside the repository and with real websockets everywhere."""
