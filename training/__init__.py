"""How the recogniser in the box was made: corpora, synthetic speech, training, evaluation; see README.md."""
