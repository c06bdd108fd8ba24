"""`python -m benchmarks.learner_accuracy`; see `program.py`."""

from benchmarks.learner_accuracy.program import main

if __name__ == "__main__":
    main()
