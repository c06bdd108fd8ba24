"""The command line: optimisation of any command, and ask and tell.

    bkbopt run SPACE.toml [--trials N] [--stop-at-regret R] [--jobs J] -- COMMAND {x} {kind}    optimise a command,
                                         or continue

    bkbopt init SPACE.toml STATE         make a log from a search space
    bkbopt init --pool ROWS [--id-column NAME] STATE     make a log over the rows of a CSV, Parquet or .npy file
    bkbopt change STATE SPACE.toml       search another space from now on: ranges, choices and parameters
    bkbopt change STATE ROWS --pool OLD_ROWS    search other rows of a pool
    bkbopt ask STATE [-n N]              the next trials; -n 50 starts torch and fits the model once for 50 trials
    bkbopt ask STATE --fixed NAME=VALUE  trials with a given value of a parameter; or --fixed JSON for several
    bkbopt enqueue STATE JSON            queue a point; missing parameters are suggested when it is asked for
    bkbopt tell STATE ID VALUE...        the value of a trial, one for each objective
    bkbopt tell STATE ID VALUE... --constraint NAME=G    with measured values of constraints
    bkbopt tell STATE ID VALUE... --replace              correct the value of a finished trial
    bkbopt tell STATE --params JSON VALUE...    the value of a point that was not asked for
    bkbopt tell STATE --from PAST.csv [--value COLUMN]    past data, a line for each trial; all lines or none
    bkbopt fail STATE ID                 report a trial without a value
    bkbopt recover STATE --older-than SECONDS [--enqueue]    fail trials of processes that died; --list shows them

    bkbopt best STATE                    the recommended point and the best value; for several objectives the front
    bkbopt best STATE --regret           with a bound of its regret
    bkbopt best STATE --fixed NAME=VALUE    the best point, or the front, with a given value, evaluated or not
    bkbopt show STATE [--trials]         a summary of the log, or all trials
    bkbopt watch STATE [--once]          the progress of a run
    bkbopt export STATE OUT.csv          the trials as a table
    bkbopt plot STATE OUT.png [--kind KIND] [--x NAME] [--y NAME] [--value-name NAME]
    bkbopt report STATE OUT.html         the run as a page for the browser, in one file

    bkbopt compile                       compile all loops now, as when a container image is built

`STATE` is the log of an optimizer, `Optimizer(space, storage=STATE)`: an SQLite file that any number of processes,
including these commands, may read and write at the same time. `tell ID`, `fail`, `show`, `watch`, `export` and
`recover` need no model and do not import torch, whose import takes most of the time of the other commands, also of
`tell --from` and `tell --params`.

Where the rows of a pool are not in the log, commands that need them take `--pool FILE`: CSV, Parquet or .npy.

Results are JSON objects on standard output, one per line. An error is one line on standard error. The exit status is 2
if the command line is wrong whatever the log holds (an unknown option, a value that is no finite number, no JSON), 130
after Ctrl-C and 1 for other errors; the log is then unchanged. If the reader of the output closes the pipe, as `head`
does, a command ends without a message, with status 141.

`bkbopt run` starts `COMMAND` for each trial, `J` at the same time. `{name}` is replaced by the value of a parameter, or
by nothing if the parameter is inactive; `{{` and `}}` are braces. The environment has `BKBOPT_PARAMS`, all parameters
as JSON, and `BKBOPT_TRIAL`, the number of the trial. The last line of the command's output is the value: a number for
each objective, and `name=number` for each constraint. A trial fails if the exit status of its command is not 0, if it
prints no finite number, or if it takes longer than `--timeout-per-trial`; the reason is a line on standard error.
The run stops if, before the first value, three outputs in a row do not have this form.

Every outcome is in the log as soon as the command has ended. After a crash the same `bkbopt run` continues: `--trials`
counts all finished trials of the log, including failed ones, but not lost ones. Lost trials are queued again 60 seconds
after their last heartbeat. With `--stop-at-regret R` the run ends once the regret of the recommended point is at most
R, in units of the value, at confidence 0.95, by `Optimizer.regret_certificate`. It is computed when the run begins and
every ten trials. Several runs may share a log, also together with `ask` and `tell`. Ctrl-C and SIGTERM end
the commands and queue their trials again. After a `kill -9` of `bkbopt run` its commands continue, but their output is
lost.

`space_file` has an example of a search space.
"""

from bkbopt.adapters.shell.commands import main
from bkbopt.adapters.shell.space_file import read_space

__all__ = ["main", "read_space"]
