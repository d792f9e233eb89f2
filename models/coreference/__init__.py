"""Coreference: which mentions of a text are the same person or thing, by trees of antecedents."""
