"""The broker: one process, one event loop, and the only room that awaits sockets, timers and threads."""
