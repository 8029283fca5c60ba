"""The PySpark data source. It comes with its own release; nothing is exported yet."""
