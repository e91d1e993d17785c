"""The networks that come with the package."""
