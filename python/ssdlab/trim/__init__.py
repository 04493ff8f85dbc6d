"""Discards the free space of a file system and reports what reached the drive."""
