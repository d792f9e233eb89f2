"""Parsing: grammars whose weights are relative frequencies, or learned with a margin from a treebank."""
