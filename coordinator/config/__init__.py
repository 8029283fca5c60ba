"""The properties of the broker and of topics, the properties file, and their descriptions for DescribeConfigs."""
