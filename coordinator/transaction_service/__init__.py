"""What the transaction coordinator does at other brokers: it writes markers, and verifies partitions."""
