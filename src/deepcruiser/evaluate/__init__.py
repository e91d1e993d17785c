"""The four research questions of the paper, for any system: `deepcruiser evaluate`.

Every mutant is made and run once. Only its answer and its projected states are kept, from which the values for every
grid and criterion are computed.
"""
