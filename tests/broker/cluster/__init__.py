"""Members of a cluster, several in one process or as processes of their own."""
