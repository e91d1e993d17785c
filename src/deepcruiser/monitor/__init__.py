"""An abstract model as a watch over live traffic: which inputs leave what training visited, where, and how far."""
