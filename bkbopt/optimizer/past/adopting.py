"""The trials of another tool in the log of an optimizer: with their numbers, times, ranges and order of completion."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from bkbopt.optimizer.log.trials import Entry, Trial
from bkbopt.optimizer.optimizer import Optimizer
from bkbopt.search.branches import Branching, inferred
from bkbopt.search.trials.evaluations import Point
from bkbopt.spaces.space import Parameter, Space

__all__ = ["adopt"]


def adopt(opt: Optimizer, trials: Iterable[tuple[Trial, Space | None]], order: Sequence[int]) -> None:
    """Fill the empty log in memory of an optimizer whose space has all parameters; its conditions are inferred.

    Parameters that some trials lack for no visible reason are optional: these trials are points of the space as they
    are. A file of the log does not store this.

    Args:
        opt: the optimizer.
        trials: by number, without gaps, each with the ranges of its parameters, None without parameters. A complete
            trial may lack a value, as one that was pruned.
        order: the numbers of the finished trials in the order of completion.
    """
    core = opt._core
    current = core.spaces[0]
    assert isinstance(current, Space)
    known = {current.items: 0}
    places = {number: place for place, number in enumerate(order)}
    entries = []
    for trial, space in trials:
        at = 0 if space is None else known.setdefault(space.items, len(known))
        if space is not None and at == len(core.spaces):
            core.spaces.append(space, {})
        own = core.spaces[at]
        assert isinstance(own, Space)
        entries.append(Entry(trial, at, _point(trial, own), places.get(trial.id)))
    core.log.put(entries)
    presence = core.update().history.presence
    space = _with_conditions(current, inferred(presence, current.keyed))
    core.spaces.append(space, {})
    core.mend()
    conditional = {space.parameters[name].column_key(name) for name in space.conditions}
    lacked = {key for pattern in presence.patterns for key in current.keyed.keys() - pattern}
    core.designer.set_problem(replace(core.designer.problem, optional=frozenset(lacked - conditional)))


def _point(trial: Trial, space: Space) -> Point:
    """The parameters of a trial in internal form; other tools may take numbers outside of their ranges, too."""

    def number(parameter: Parameter, name: str) -> float:
        position = parameter.locate(trial.params[name])
        return float(trial.params[name]) if position is None else parameter.internal_at(position)

    return {space.parameters[name].column_key(name): number(space.parameters[name], name) for name in trial.params}


def _with_conditions(space: Space, branching: Branching) -> Space:
    """The space with a condition for each parameter that has a switch; none where switches go round in a circle."""
    names = {parameter.column_key(name): name for name, parameter in space.items}
    reached = [key for key in names if key not in branching.switches]
    while more := [key for key, switch in branching.switches.items() if switch in reached and key not in reached]:
        reached += more

    def conditional(key: str, parameter: Parameter) -> Parameter:
        if key not in branching.switches or key not in reached:
            return parameter
        name = names[branching.switches[key]]
        switch = space.parameters[name]
        values = (switch.external(number) for number in sorted(branching.comes_with[key]))
        present = [value for value in values if switch.locate(value) is not None]
        return replace(parameter, when={name: present}) if present else parameter

    return Space(tuple((name, conditional(key, space.parameters[name])) for key, name in names.items()))
