"""General helpers: argument checks, state files, SQLite, locks, compiled loops, thread limits and lazy imports."""
