"""Listeners whose clients log in before they are served: what is said until then, by whom, and for how long."""
