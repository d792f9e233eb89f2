"""Lists of English words, written for this package: pronouns, titles, names, nouns of people, closed classes.

They stand in for columns that a file does not have. Everything in them is in lower case.
"""
