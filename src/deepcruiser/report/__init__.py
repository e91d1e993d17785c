"""What a campaign shows: a screen or lines while it runs, and a report of its folder."""
