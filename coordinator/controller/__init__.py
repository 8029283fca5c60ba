"""The decisions of a cluster's controller: elections, reassignments, balance. Pure: the cluster in, new states out."""
