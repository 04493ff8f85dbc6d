"""Whether a discard reaches the flash, on a drive and on a twin."""
