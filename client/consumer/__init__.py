"""Reading: positions, fetching, offsets, the high-level consumer, the low-level reader."""
