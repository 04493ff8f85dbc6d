"""How much of a drive to leave unused, and the commands that do it."""
