"""Offsets, for consumers, Admin and the Spark connector: find them in the logs, commit them, read what is committed."""
