"""The paper's four questions, asked of any system: `deepcruiser evaluate`.

Every mutant is made and run once, and what is kept of its run is small: the answer, and the states projected to a few
components. Whatever grid or criterion is asked about comes from there.
"""
