"""The cluster's metadata as one immutable value, the changes to it, and the rules that a change must obey. Pure."""
