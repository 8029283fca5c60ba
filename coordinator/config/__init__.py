"""Kafka's property names as data: of the broker, of a topic; the file that holds them; what DescribeConfigs says."""
