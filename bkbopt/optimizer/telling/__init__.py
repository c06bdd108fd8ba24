"""The arguments of `tell` and `fail` as checked reports of single trials, and warnings about them."""
