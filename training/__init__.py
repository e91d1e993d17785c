"""How the built-in recogniser was made: corpora, synthetic speech, training, evaluation; see README.md."""
