"""Spark jobs: `group_activity` writes tables of the activity of a cluster's consumer groups."""
