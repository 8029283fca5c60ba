"""The metadata store, and the image of brokers, topics, leaders and configs."""
