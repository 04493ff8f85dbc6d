"""What the commands of `ssdlab run` share: options, the registry, how a run is conducted."""
