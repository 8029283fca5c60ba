"""Hosts state machines on the partitions of an internal topic. Knows nothing of groups: contract.py is all it needs."""
