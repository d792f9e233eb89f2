"""Where alerts go: files, syslog, webhooks, Alertmanager, the terminal, all through one protocol."""
