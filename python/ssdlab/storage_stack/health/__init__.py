"""The state of a drive: SMART, write counters, link speed, temperature."""
