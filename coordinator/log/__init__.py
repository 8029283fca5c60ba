"""Append-only segments in Kafka's on-disk format, and the same log in memory."""
