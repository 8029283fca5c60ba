"""Connections to the brokers of a cluster, cached metadata, and retries of requests."""
