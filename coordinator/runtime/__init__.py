"""The groups and offsets of one `__consumer_offsets` partition; owns their replay."""
