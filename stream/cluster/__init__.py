"""The distributed engine: shards that each judge one lane of a bus, and what joins their findings to campaigns."""
