"""How a drive lays its bytes out: the search for chunk and stripe, and what it asks."""
