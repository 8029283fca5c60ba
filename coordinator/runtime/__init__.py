"""Hosts state machines on the partitions of an internal topic. It depends only on contract.py, not on groups."""
