"""Entry point of `python -m bkbopt.adapters.shell`."""

import sys

from bkbopt.adapters.shell.commands import main

sys.exit(main())
