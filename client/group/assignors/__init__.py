"""Who gets which partition: range, round-robin, sticky, cooperative-sticky, or one of your own."""
