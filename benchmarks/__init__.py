"""Rota and Apache Kafka in one run, on the same work: what is printed is ratios. Never part of the test gate."""

import os

# An installed package has bytecode. Where the environment forbids to write it, each start of a broker would compile all
# modules again: half of its processor time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
