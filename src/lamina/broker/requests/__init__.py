"""From a request to its response: the API table and one handler for each API."""
