"""Between the user's parameters, the points of the search, and the JSON of a log file."""
