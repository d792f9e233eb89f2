"""Records: their schema, tables, batches and encoding, and the reader of files."""
