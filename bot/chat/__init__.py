"""A message's way in, and its turn: from the frame that arrived to the last send of its answer."""
