"""The HTTP server and its guard."""
