"""Coverage-guided testing: Algorithm 1 of the paper, its queue, its folder, and the replay of what it found."""
