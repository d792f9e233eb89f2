"""Documents and the formats that they are read from and written to."""
