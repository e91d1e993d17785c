"""From failures to what is wrong: what kind each one is, the mildest way to show it, and which have one cause."""
