"""Statistics on plain numbers; no I/O, no records."""
