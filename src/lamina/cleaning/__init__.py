"""Cleaning one log: the plan of a pass, the pass itself, and putting its result in place."""
