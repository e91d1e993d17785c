"""Files: ours appear whole or not at all, and foreign ones are checked before anything is trusted to read them."""
