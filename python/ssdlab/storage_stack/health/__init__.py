"""What a drive tells of itself: temperature, link, what it counts of its own writing."""
