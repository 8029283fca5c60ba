"""Jobs that are ready to run: `group_activity`, what the consumer groups of a cluster do, as tables."""
