"""Published figures of real drives against their twins: `ssdlab twin validate`."""
