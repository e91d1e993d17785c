"""From what a network puts out to words, labels and spans of time."""
