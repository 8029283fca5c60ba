"""The producer: partitioners, batches, requests, deliveries."""
