"""What a sweep found, for people."""
