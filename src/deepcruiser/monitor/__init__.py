"""An abstract model as a watch over live traffic: which inputs leave the region that training visited, where, and how far."""
