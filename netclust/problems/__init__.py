"""Problems: what a structured task offers to every learner."""
