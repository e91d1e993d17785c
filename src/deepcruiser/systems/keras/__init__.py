"""Recurrent networks in Keras."""
