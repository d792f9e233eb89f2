"""The daemon: sources through the linker to alerts, with checkpoints, metrics and feedback."""
