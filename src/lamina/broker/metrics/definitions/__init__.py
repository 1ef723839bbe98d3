"""Every metric that a broker exposes, by section. Must not know where values come from."""
