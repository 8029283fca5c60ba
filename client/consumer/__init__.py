"""The consumer and the low-level partition reader: positions, fetching, commits."""
