"""The page cache of a target, and what is known of its write cache."""
