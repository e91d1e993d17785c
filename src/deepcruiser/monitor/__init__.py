"""Watching live traffic with an abstract model: which inputs leave the training region, where, and how far."""
