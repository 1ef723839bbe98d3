"""What goes wrong with a cluster on this machine, in one sentence that says what to do."""


class ClusterError(Exception):
    """The cluster cannot do what was asked; its text is one sentence."""
