"""Making, opening and copying the file of an optimizer's log."""

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from bkbopt import __version__
from bkbopt._support.file_paths import is_of_log
from bkbopt._support.replacing import as_path, replace_atomically
from bkbopt._support.sqlite import replacing
from bkbopt.confidence import Confidence
from bkbopt.errors import ArgumentError
from bkbopt.optimizer.arguments import known_constraint
from bkbopt.optimizer.designers.locking import HasLog
from bkbopt.optimizer.designers.logged_designer import LoggedDesigner
from bkbopt.optimizer.log import limits, log_rows
from bkbopt.optimizer.log.log_file import LogFile
from bkbopt.optimizer.log.log_rows import Described
from bkbopt.optimizer.log.log_schema import to_json
from bkbopt.optimizer.log.objectives import named_directions, stored_names
from bkbopt.optimizer.log.trials import Entry, values_of
from bkbopt.optimizer.translation.description import (
    check_text,
    describe,
    describe_schedule,
    describe_surrogate,
    read_candidates,
    read_schedule,
    read_surrogate,
    with_new_options,
)
from bkbopt.optimizer.translation.log_entries import stored
from bkbopt.search.criteria.acquisition import Acquisition
from bkbopt.search.trials.states import COMPLETE, WAITING
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.space import Space
from bkbopt.spaces.values import shown
from bkbopt.surrogates import Surrogate

Made = TypeVar("Made", bound=HasLog)

__all__ = ["arguments_of", "describe_options", "join", "kept", "objectives_of", "opened", "save"]

#: Arguments of `Optimizer` that are stored unchanged.
ARGUMENTS = ("n_startup_trials", "fit", "duplicates", "deterministic", "perturbations")
#: Options that may be changed when a log is opened.
ANEW = ("beta", "n_startup_trials")
#: Largest number of characters of a value in a message.
SHOWN = 200
#: The meaning of None as the value of an option in a log.
_NO_VALUE = {
    "acquisition": "a function of the user",
    "surrogate.kernel": "the default",
    "surrogate.kernel.form": "a kernel of the user",
}


#: The default of `n_startup_trials` without an existing log.
STARTUP = 10


def describe_options(core: LoggedDesigner, acquisition: object) -> dict[str, Any]:
    """The arguments of an optimizer as a log stores them.

    Raises:
        ArgumentError: an argument cannot be stored.
    """
    options, aims = core.designer.options, core.aims
    check_text(to_json(list(aims.objectives)), "directions", "names")
    check_text(to_json(list(aims.limits)), "constraints", "names")
    return {
        "bkbopt": __version__,
        "directions": list(aims.directions),
        "objectives": list(aims.objectives) or None,  # logs of earlier versions have no names
        "constraints": limits.stored(aims.limits),
        "entropy": core.designer.seed,
        "n_startup_trials": options.n_startup_trials,
        "acquisition": acquisition if isinstance(acquisition, str) else None,
        "fit": options.models.fit,
        "duplicates": "avoid" if options.avoid_duplicates else "allow",
        "deterministic": options.models.deterministic,
        "perturbations": options.perturbations,
        "feasible": known_constraint.stored(core.feasible),
        "beta": describe_schedule(options.schedule),
        "surrogate": describe_surrogate(options.surrogate),
    }


def save(path: str | os.PathLike[str], options: Mapping[str, Any], core: LoggedDesigner) -> None:
    """Write a copy of the log; see `Optimizer.save`."""
    target = as_path(path)
    if target == ":memory:" or "://" in target:
        raise ArgumentError(f"path: expected the path of a file, as 'runs.db', got {target!r}; `open` refuses it.")
    if core.file is not None and is_of_log(target, core.file.path):
        raise ArgumentError(f"path: expected a file other than that of the log itself, got {target!r}.")
    for entry in core.log.entries:
        _check_can_be_read(entry, core.spaces[entry.space])
    entries, numbers = [stored(entry, core.spaces) for entry in core.log.entries], range(len(core.spaces))
    if isinstance(core.spaces[-1], Arms):  # one pool for all earlier ones
        first = max(len(numbers) - 2, 0)
        entries, numbers = [replace(entry, space=max(entry.space - first, 0)) for entry in entries], numbers[first:]
    described = [describe(core.spaces[number]).with_past(core.spaces.past(number)) for number in numbers]
    if isinstance(core.spaces[-1], Arms):
        described[:-1] = map(_without_rows, described[:-1])
    content = LogFile.written(options, described, entries)
    with replacing(os.path.realpath(target)):
        replace_atomically(target, lambda file: file.write(content))


def _check_can_be_read(entry: Entry, space: Space | Arms) -> None:
    """Refuse a trial that opening a log would refuse; those of a study may be such ones."""
    t, advice = entry.trial, "a log cannot hold it: keep the study's storage"
    if t.state == COMPLETE and not (values_of(t) or t.constraints):
        raise ArgumentError(
            f"save: expected trials with values or constraints, got trial {t.id} without any, as pruned trials of a "
            f"study are, or trials without the quantity of single_objective; {advice}, or the whole log."
        )
    ranges = space.parameters if isinstance(space, Space) else {}
    outside = any(ranges[name].locate(value) is None for name, value in t.params.items() if name in ranges)
    if outside or not (t.params or t.state == WAITING):
        raise ArgumentError(
            f"save: expected trials with parameters within their ranges, got trial {t.id} with "
            f"{shown(dict(t.params))}, as trials of a study may have that were enqueued or failed; {advice}."
        )


def _without_rows(pool: Described) -> Described:
    """A pool in place of an earlier one, without rows; the labels of a product's parts are those of the trials."""
    return replace(pool, text={key: value for key, value in pool.text.items() if key != "parts"}, rows=None)


def arguments_of(
    file: LogFile,
    pool: Any,
    surrogate: Surrogate | None,
    acquisition: Acquisition | None,
    beta: Confidence | None,
    *,
    has_feasible: bool,
) -> tuple[Space | Arms, dict[str, Any]]:
    """The space or pool of a log, and the other arguments that its optimizer was made with.

    Raises:
        ArgumentError: an argument that is not stored is missing, or is not that of the log.
        StateFileError: the stored arguments are inconsistent.
    """
    options = file.options
    with file.fits():
        if options["acquisition"] is None and acquisition is None:
            raise ArgumentError("acquisition: expected the function of yours that the log was made with, got none.")
        current = read_candidates(file.spaces[-1], pool, options["fit"])
        own = None if isinstance(current, Space) else current.feasible
        if options["feasible"] is True and not has_feasible and own is None:
            raise ArgumentError("feasible: expected the constraint of yours that the log was made with, got none.")
        arguments = {name: options[name] for name in ARGUMENTS}
        arguments["directions"] = named_directions(options["directions"], objectives_of(file))
        arguments["constraints"] = {n: limit.pair for n, limit in limits.limits_of(options["constraints"]).items()}
        arguments["acquisition"] = options["acquisition"] if acquisition is None else acquisition
        arguments["surrogate"] = read_surrogate(options["surrogate"], surrogate)
        arguments["beta"] = read_schedule(options["beta"], beta)
        return current, arguments


def opened(make: Callable[..., Made], path: str | os.PathLike[str], feasible: Any, given: Mapping[str, Any]) -> Made:
    """The optimizer of a log, which `make` makes of its space or pool and arguments; see `Optimizer.open`.

    `given` are the arguments of `arguments_of` behind the file.
    """
    file = LogFile(path)
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(file.close)
        current, arguments = arguments_of(file, **given, has_feasible=feasible is not None)
        with file.fits():
            known_constraint.check_as_kept(file.options["feasible"], feasible)
            optimizer = make(current, feasible=feasible, **arguments)
        optimizer._core.follow(file, current)
        on_failure.pop_all()
    return optimizer


def kept(file: LogFile | None, beta: Any, n_startup_trials: Any) -> tuple[Any, Any]:
    """`beta` and `n_startup_trials` as given, or those of the log, or the default, if they were left out."""
    if file is None:
        return beta, STARTUP if n_startup_trials is None else n_startup_trials
    with file.fits():
        beta = read_schedule(file.options["beta"]) if beta is None else beta
        return beta, file.options["n_startup_trials"] if n_startup_trials is None else n_startup_trials


def objectives_of(file: LogFile) -> tuple[str, ...]:
    """The names of a log's objectives; empty if they have none."""
    with file.fits():
        return stored_names(file.options)


def join(
    core: LoggedDesigner,
    path: str | os.PathLike[str],
    file: LogFile | None,
    options: dict[str, Any],
    *,
    seeded: bool,
    free: bool = True,
) -> None:
    """Use a file for the log of an optimizer: a new file, or one that was made with the same arguments.

    Args:
        core: the designer and log of an optimizer without trials.
        path: path of the file.
        file: the existing log, or None.
        options: the result of `describe_options`.
        seeded: whether a seed was given; otherwise that of the log is used.
        free: whether `feasible` was left out; then the rules of the log are used.

    Raises:
        ArgumentError: the log was made with other arguments, which the message names.
    """
    given = core.spaces[-1]
    mine = describe(given)
    if file is None:
        file = LogFile.create(path, options, mine)
    if not seeded:
        options = {**options, "entropy": file.options.get("entropy")}
    with file.fits():
        held = {**file.options, "surrogate": with_new_options(file.options["surrogate"])}
    new = [*ANEW, "objectives"] if held.get("objectives") is None else ANEW  # names may be given later
    if free and options["feasible"] is False and isinstance(held["feasible"], list):
        options = {**options, "feasible": held["feasible"]}
    # Quantities that were constraints once stay in the log.
    if _limited(options["constraints"]) == _limited(held["constraints"]):
        options = {**options, "constraints": held["constraints"]}
    compared = [name for name in options if name not in ("bkbopt", *new)]
    other = [text for name in compared for text in _differences(name, held.get(name), options[name])]
    if other:
        raise ArgumentError(
            f"storage: expected the arguments that {file.path} was made with, got others: {'; '.join(other)}. Pass the "
            "same, take all from the log with Optimizer.open(path), or name another file."
        )
    core.follow(file, _current(file, given, mine, options["fit"]))
    anew = {name: options[name] for name in new if to_json(options[name]) != to_json(file.options.get(name))}
    if anew:  # written last, since a log that cannot be read stays as it is
        with file.transaction() as writer:
            now = log_rows.options_of(writer.connection).get("objectives")
            if "objectives" in anew and now not in (None, anew["objectives"]):
                raise ArgumentError(
                    f"storage: expected objectives without names in {file.path}, but another process has just named "
                    f"them {_shown(now)}; pass the same names, or none."
                )
            for name, value in anew.items():
                writer.set_option(name, value)
        file.options |= anew


def _current(file: LogFile, given: Space | Arms, mine: Described, fit: bool) -> Space | Arms:
    """The space or pool of the next trials, where `given`, described by `mine`, is one that the log has or had."""
    last = file.spaces[-1]
    if not any(_is_same(mine, described) for described in file.spaces):
        what = "search space" if isinstance(given, Space) else "pool"
        raise ArgumentError(
            f"storage: expected the {what} that {file.path} was made with, got another: {_other(last, mine)}. Pass the "
            f"same, change it with Optimizer.open(path).set_{what.rpartition(' ')[2]} (in the shell bkbopt change), or "
            "name another file."
        )
    with file.fits():
        if isinstance(given, Space) or last.rows is not None or not _is_same(mine, last):
            return read_candidates(last, None, fit)
        return read_candidates(last, given.objects if given.columns is None else given.pool, fit)


def _other(held: Described, given: Described) -> str:
    """The difference between a space or pool and that of a log, as text for a message."""
    kinds = ["a search space" if described.is_space else "a pool" for described in (held, given)]
    if kinds[0] != kinds[1]:
        return f"the log has {kinds[0]}, the call {kinds[1]}"
    if not held.is_space:
        return "these are not the rows of the log, or are in another order"
    there, here = ({each["name"]: each for each in described.text["parameters"]} for described in (held, given))
    differences = [
        f"{name!r} is {_shown(there[name]) if name in there else 'not'} in the log and "
        f"{_shown(here[name]) if name in here else 'not'} here"
        for name in dict.fromkeys([*there, *here])
        if to_json(there.get(name)) != to_json(here.get(name))
    ]
    return "; ".join(differences) or f"the order of the log is {', '.join(map(repr, there))}"


def _limited(kept: Any) -> list[Any]:
    """The constraints that a log has now, as it keeps them."""
    found = limits.limits_of(kept)
    return limits.stored({name: limit for name, limit in found.items() if limit != limits.FREE})


def _is_same(mine: Described, other: Described) -> bool:
    """Whether two spaces are equal, or two pools have the same rows."""
    if mine.is_space or other.is_space:
        return to_json(mine.with_past({}).text) == to_json(other.with_past({}).text)
    keys = ("objects", "rows", "names", "kinds", "n_rows", "fingerprint")
    return all(mine.text.get(key) == other.text.get(key) for key in keys)


def _differences(name: str, held: Any, given: Any) -> list[str]:
    """The differences between an option of the log and the given one, as text for a message."""
    if to_json(held) == to_json(given):
        return []
    if name == "entropy":
        return ["the log has another seed, which is used if seed= is left out"]
    if name == "constraints":
        there, here = (list(limits.texts(_limited(each))) for each in (held, given))
        how = "set_constraints (in the shell bkbopt change) changes it"
        return [f"constraints is {_shown(there)} in the log and {_shown(here)} here; {how}"]
    if name == "feasible":
        if isinstance(held, bool) and isinstance(given, bool):
            return [f"the log was made {'with' if held else 'without'} feasible="]
        where = [_shown(v) if isinstance(v, list) else "a function" if v else "none" for v in (held, given)]
        how = "set_space(opt.space, feasible=...) or set_pool (in the shell bkbopt change) changes it"
        return [f"feasible is {where[0]} in the log and {where[1]} here; {how}"]
    if isinstance(held, Mapping) and isinstance(given, Mapping):
        keys = ["class"] if held.get("class") != given.get("class") else dict.fromkeys([*held, *given])
        return [text for key in keys for text in _differences(f"{name}.{key}", held.get(key), given.get(key))]
    where = [_shown(value) if value is not None else _NO_VALUE.get(name, "none") for value in (held, given)]
    return [f"{name} is {where[0]} in the log and {where[1]} here"]


def _shown(value: object) -> str:
    text = to_json(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
