"""Writing: partitioners, gathering, sending, delivery."""
