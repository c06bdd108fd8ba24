"""The branches of a conditional space, read off the trials.

Optuna's spaces are defined by running: whether a parameter is suggested may depend on the values of others. A *switch*
is a discrete parameter whose value decides, in all trials so far, whether some other parameter is there. A *branch* is
one setting of all switches, with the parameters that come with it. One model over all columns serves every branch.

Parameters that come and go for no reason to be seen are proposed in every branch: a proposal that is not used costs
nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bkbopt.adapters.optuna.encoding import Values

__all__ = ["Branch", "branches_of", "switches_of"]

#: A parameter with more different values than this in the trials is no switch.
MAX_SWITCH_VALUES = 24


@dataclass(frozen=True)
class Branch:
    """A setting of the switches, and the free columns that come with it.

    Attributes:
        setting: values of the switches that are there, in internal form.
        free: keys of the columns that vary.
        rows: indices of the trials in it.
    """

    setting: Values
    free: tuple[str, ...]
    rows: tuple[int, ...]


def switches_of(rows: Sequence[Values], keys: Sequence[str], discrete: Sequence[str]) -> dict[str, str]:
    """The switch of every conditional key that has one.

    Args:
        rows: values of the trials, by key.
        keys: all keys.
        discrete: those whose values can be switches.
    """
    sometimes = [key for key in keys if any(key not in row for row in rows)]
    if not sometimes:
        return {}
    switches: dict[str, str] = {}
    patterns = [frozenset(row) for row in rows]
    by_value = {switch: _patterns(rows, patterns, switch) for switch in discrete}
    for key in sometimes:
        for switch in sorted(discrete, key=lambda name: (name in sometimes, name)):
            if switch != key and _decides(by_value[switch], key):
                switches[key] = switch
                break
    return switches


def _patterns(
    rows: Sequence[Values], patterns: Sequence[frozenset[str]], switch: str
) -> Mapping[float | None, set[frozenset[str]]]:
    """The sets of keys that occur together with each value of the switch."""
    found: dict[float | None, set[frozenset[str]]] = {}
    for row, pattern in zip(rows, patterns, strict=True):
        found.setdefault(row.get(switch), set()).add(pattern)
    return found


def _decides(patterns: Mapping[float | None, set[frozenset[str]]], key: str) -> bool:
    if len(patterns) > MAX_SWITCH_VALUES:
        return False
    # A switch that is absent itself must take the key with it: a parent does not appear without its parent.
    absent = any(key in pattern for pattern in patterns.get(None, ()))
    return not absent and all(len({key in pattern for pattern in found}) == 1 for found in patterns.values())


def branches_of(
    rows: Sequence[Values], keys: Sequence[str], discrete: Mapping[str, Sequence[float]], most: int
) -> list[Branch]:
    """The branches that the trials show, the most visited first, and one for each switch value not seen yet.

    Args:
        rows: values of the trials, by key.
        keys: keys of all columns that may be proposed.
        discrete: the possible values of those that may be switches.
        most: number of branches returned at most.
    """
    switches = switches_of(rows, keys, list(discrete))
    names = sorted(set(switches.values()))
    whole = Branch({}, tuple(keys), tuple(range(len(rows))))
    if not names:
        return [whole]
    members: dict[tuple[float | None, ...], list[int]] = {}
    for i, row in enumerate(rows):
        members.setdefault(tuple(row.get(name) for name in names), []).append(i)
    # Which keys come with a switch's value: what any trial with that value shows.
    comes_with = {
        key: {row[switch] for row in rows if switch in row and key in row} for key, switch in switches.items()
    }
    found = [
        _branch(dict(zip(names, values, strict=True)), keys, switches, comes_with, at) for values, at in members.items()
    ]
    found = [branch for branch in found if _is_possible(branch.setting, switches, discrete)]
    found.sort(key=lambda branch: -len(branch.rows))
    # Ranges that moved may leave no combination of switches that was seen: then these vary like the rest.
    return _unseen(rows, names, switches, keys, discrete) + found[:most] or [whole]


def _branch(
    values: Mapping[str, float | None],
    keys: Sequence[str],
    switches: Mapping[str, str],
    comes_with: Mapping[str, set[float]],
    rows: Sequence[int],
) -> Branch:
    setting = {name: value for name, value in values.items() if value is not None}
    free = [
        key
        for key in keys
        if key not in values and (key not in switches or setting.get(switches[key]) in comes_with[key])
    ]
    return Branch(setting, tuple(free), tuple(rows))


def _is_possible(setting: Values, switches: Mapping[str, str], discrete: Mapping[str, Sequence[float]]) -> bool:
    """Whether no switch has a value that its range has lost, or never had; those under other switches do not count."""
    return all(
        name in switches or any(math.isclose(value, other, rel_tol=1e-9, abs_tol=1e-12) for other in discrete[name])
        for name, value in setting.items()
    )


def _unseen(
    rows: Sequence[Values],
    names: Sequence[str],
    switches: Mapping[str, str],
    keys: Sequence[str],
    discrete: Mapping[str, Sequence[float]],
) -> list[Branch]:
    """A branch for each value that a switch never had; what comes with it is not known, so nothing conditional does."""
    out = []
    for name in names:
        if name in switches:
            continue  # only there under another switch, whose branches come first
        seen = {row[name] for row in rows if name in row}
        for value in discrete[name]:
            if value not in seen:
                free = tuple(key for key in keys if key not in switches and key != name)
                out.append(Branch({name: value}, free, ()))
    return out
