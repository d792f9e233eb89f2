"""The distributed engine: shards that each judge one partition of a bus, and what joins their findings to campaigns."""
