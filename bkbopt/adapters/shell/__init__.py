"""The command-line tool: ask and tell for black boxes that are not Python.

    bkbopt init SPACE.toml STATE         make a state file from a search space
    bkbopt ask STATE [-n N]              the next trials
    bkbopt ask STATE --fixed JSON        trials with given values of some parameters
    bkbopt enqueue STATE JSON            a point that is asked next; parameters left out are suggested
    bkbopt tell STATE ID VALUE...        the value of a trial, one for each objective
    bkbopt tell STATE ID VALUE... --constraint NAME=G    with values of constraints: feasible where G <= 0
    bkbopt tell STATE --params JSON VALUE...    the value of a point that was never asked
    bkbopt fail STATE ID                 a trial gave no value
    bkbopt best STATE                    what to use, and the best value told; of several objectives the front
    bkbopt show STATE [--trials]         what the state is; or all trials
    bkbopt plot STATE OUT.png [--kind KIND] [--x NAME] [--y NAME]

Results are JSON objects on standard output, one a line. An error is one line on standard error, with exit status 2 for
a command that cannot be understood and 1 for everything else; the state is then as it was. Commands that change the
state lock it, and wait for each other.

`space_file` shows a search space.
"""

from bkbopt.adapters.shell.commands import main
from bkbopt.adapters.shell.space_file import read_space

__all__ = ["main", "read_space"]
