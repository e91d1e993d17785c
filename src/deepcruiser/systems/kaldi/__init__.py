"""EESEN and nnet1 networks of Kaldi."""
