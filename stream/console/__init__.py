"""The web console: what the pages show, made from the store, the alerts and the captures."""
