"""The networks in the box."""
