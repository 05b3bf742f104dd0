"""A model over models: attempts, failover, what is known of each, and prices."""
