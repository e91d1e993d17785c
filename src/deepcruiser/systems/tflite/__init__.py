"""Streaming networks in TensorFlow Lite files."""
