"""Experiment `suite`: the benchmark table of AS SSD and CrystalDiskMark."""
