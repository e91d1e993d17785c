"""What a campaign shows while it runs: a screen in the terminal, or lines."""
