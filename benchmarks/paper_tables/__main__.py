"""`python -m benchmarks.paper_tables`; see `program.py`."""

from benchmarks.paper_tables.program import main

if __name__ == "__main__":
    main()
