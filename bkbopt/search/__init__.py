"""What to evaluate next: standardisation, fitted models, acquisition functions and their maximisers."""
