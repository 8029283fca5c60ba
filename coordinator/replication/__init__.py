"""Copies partitions from their leaders: the requests that a follower sends, and what it does with the answers."""
