"""From failures to findings: the kind of each failure, its mildest recipe, and which failures have one cause."""
