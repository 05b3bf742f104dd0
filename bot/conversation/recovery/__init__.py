"""After a start or a lost connection: what was left behind or said meanwhile, settled once."""
