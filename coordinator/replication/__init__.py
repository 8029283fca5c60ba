"""Copies partitions from their leaders: the requests of a follower, and the handling of the responses."""
