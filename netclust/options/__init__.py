"""Option groups and output helpers of commands."""
