"""What all conclusions stand on: evidence, latencies, and one run held against another."""
