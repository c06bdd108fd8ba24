"""How well online learners predict streams, by their defaults, beside those of scikit-learn and river."""
