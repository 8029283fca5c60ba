"""Kafka's requests and responses, one file for each API."""
