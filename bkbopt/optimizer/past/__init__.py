"""Past trials of another tool or of a table in the log of an optimizer, for adapters."""
