"""Connections to a Kafka broker, for clients and for brokers: frames, handshake, requests with their responses."""
