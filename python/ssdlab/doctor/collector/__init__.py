"""Scripts that collect what the doctor needs on machines without ssdlab."""
