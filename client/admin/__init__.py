"""Topics, groups, offsets, configs and the cluster: described and changed."""
