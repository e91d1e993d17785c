"""Recurrent networks in PyTorch."""
