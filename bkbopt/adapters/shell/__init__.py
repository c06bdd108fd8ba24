"""The command line: a loop over any command, and ask and tell for everything else.

    bkbopt run SPACE.toml [--trials N] [--jobs J] -- COMMAND {x} {kind}    optimise a command; goes on where it was

    bkbopt init SPACE.toml STATE         make a log from a search space
    bkbopt ask STATE [-n N]              the next trials; -n 50 pays once for the start of torch and the fit
    bkbopt ask STATE --fixed JSON        trials with given values of some parameters
    bkbopt enqueue STATE JSON            a point that is asked next; parameters left out are suggested
    bkbopt tell STATE ID VALUE...        the value of a trial, one for each objective
    bkbopt tell STATE ID VALUE... --constraint NAME=G    with values of constraints: feasible where G <= 0
    bkbopt tell STATE --params JSON VALUE...    the value of a point that was never asked
    bkbopt fail STATE ID                 a trial gave no value
    bkbopt recover STATE --older-than SECONDS [--enqueue]    fail trials of processes that died; --list shows them

    bkbopt best STATE                    what to use, and the best value told; of several objectives the front
    bkbopt show STATE [--trials]         what the log holds; or all trials
    bkbopt watch STATE [--once]          the progress of a run
    bkbopt export STATE OUT.csv          the trials as a table
    bkbopt plot STATE OUT.png [--kind KIND] [--x NAME] [--y NAME]
    bkbopt report STATE OUT.html         the run as a page for the browser, in one file

`STATE` is the log of an optimizer, `Optimizer(space, storage=STATE)`: an SQLite file that any number of processes may
read and write at once, these commands among them. `tell ID`, `fail`, `show`, `watch`, `export` and `recover` need no
model and start no torch, which takes most of the second or more that the other commands take.

Results are JSON objects on standard output, one a line. An error is one line on standard error, with exit status 2 for
a command that cannot be understood, 130 after Ctrl-C and 1 for everything else; the log is then as it was.

`bkbopt run` starts `COMMAND` for each trial, `J` at once, with the values of the parameters in place of `{name}` (an
inactive one is empty; `{{` and `}}` are braces) and in the environment: `BKBOPT_PARAMS` has all of them as JSON,
`BKBOPT_TRIAL` the number of the trial. The last line that it prints is the value: a number for each objective, and
`name=number` for each constraint. A trial fails where the command ends with another status than 0, prints no finite
number, or takes longer than `--timeout-per-trial`; the reason is a line on standard error.

Every outcome is in the log as soon as the command has ended. The same `bkbopt run` goes on after a crash: `--trials`
counts all finished trials of the log, failed ones too, but not those that were lost. These are queued again, 60 seconds
after their last heartbeat. Several runs may share a log, also beside `ask` and `tell`. Ctrl-C and SIGTERM end the
commands and queue their trials again. After `kill -9` of `bkbopt run` itself its commands go on, but nobody reads what
they print.

`space_file` shows a search space.
"""

from bkbopt.adapters.shell.commands import main
from bkbopt.adapters.shell.space_file import read_space

__all__ = ["main", "read_space"]
