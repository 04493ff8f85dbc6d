"""ssdlab measures an SSD, builds its twin, and tells what will make it fast again."""
