"""From traces to a Markov decision process: projection, grid, profile, model."""
