"""The online engine: linking, its state, its explanations and its adaptation."""
