"""Log events and the timeline of each group."""
