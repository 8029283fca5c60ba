"""Rota and Apache Kafka in one run, on the same work: what is printed is ratios. Never part of the test gate."""
