"""`python -m bkbopt`: the command line, where its script is not on the path."""

import sys

from bkbopt.adapters.shell import main

if __name__ == "__main__":
    sys.exit(main())
