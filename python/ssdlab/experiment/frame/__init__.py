"""What every experiment stands on: the target, the steps, their records, forecast and warnings."""
