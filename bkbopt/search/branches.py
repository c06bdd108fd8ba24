"""Branches of a conditional space, from its declared conditions or inferred from trials.

A *switch* is a discrete parameter whose value decides whether some other parameter is active. A *branch* is a setting
of all switches, with the parameters that are then active. One model over all columns is used for every branch.

If no space was declared (Optuna's spaces are defined by running), switches are inferred: a switch then is a discrete
parameter whose value decides, in all trials so far, whether another parameter is present. Parameters that some trials
lack for no visible reason are proposed in every branch, since an unused proposal costs nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bkbopt.search.trials.evaluations import Point
from bkbopt.spaces.space import Parameter, Space

__all__ = ["Branch", "Branching", "declared_branches", "switches_of"]

#: A parameter with more distinct values in the trials than this is not a switch.
MAX_INFERRED_VALUES = 24


@dataclass(frozen=True)
class Branch:
    """A setting of the switches, with the columns that vary in it.

    Attributes:
        setting: values of the active switches, in internal form.
        free: keys of the columns that vary.
        rows: indices of the trials in this branch.
    """

    setting: Point
    free: tuple[str, ...]
    rows: tuple[int, ...]


def switches_of(rows: Sequence[Point], keys: Sequence[str], discrete: Sequence[str]) -> dict[str, str]:
    """The inferred switch of each conditional key that has one.

    Args:
        rows: values of the trials, by key.
        keys: all keys.
        discrete: keys of the parameters that can be switches.
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
    rows: Sequence[Point], patterns: Sequence[frozenset[str]], switch: str
) -> Mapping[float | None, set[frozenset[str]]]:
    """For each value of the switch, the sets of keys of the trials with this value."""
    found: dict[float | None, set[frozenset[str]]] = {}
    for row, pattern in zip(rows, patterns, strict=True):
        found.setdefault(row.get(switch), set()).add(pattern)
    return found


def _decides(patterns: Mapping[float | None, set[frozenset[str]]], key: str) -> bool:
    if len(patterns) > MAX_INFERRED_VALUES:
        return False
    # Where the switch is absent the key must be absent too: a parameter is not active without its switch.
    absent = any(key in pattern for pattern in patterns.get(None, ()))
    return not absent and all(len({key in pattern for pattern in found}) == 1 for found in patterns.values())


@dataclass(frozen=True)
class Branching:
    """Switches and branches inferred from trials; made by `of`.

    Attributes:
        keys: keys of all columns that may be proposed.
        discrete: possible values of the parameters that may be switches.
        switches: the switch of each conditional key.
        comes_with: for each conditional key, the values of its switch with which it was present.
        members: rows of the trials with each setting of all switches, in the order of `names`; None for absent ones.
    """

    keys: tuple[str, ...]
    discrete: Mapping[str, Sequence[float]]
    switches: Mapping[str, str]
    comes_with: Mapping[str, set[float]]
    members: Mapping[tuple[float | None, ...], Sequence[int]]

    @classmethod
    def of(cls, rows: Sequence[Point], keys: Sequence[str], discrete: Mapping[str, Sequence[float]]) -> "Branching":
        """Infer the switches from the values of the trials, by key."""
        switches = switches_of(rows, keys, list(discrete))
        names = sorted(set(switches.values()))
        members: dict[tuple[float | None, ...], list[int]] = {}
        for i, row in enumerate(rows):
            members.setdefault(tuple(row.get(name) for name in names), []).append(i)
        comes_with = {
            key: {row[switch] for row in rows if switch in row and key in row} for key, switch in switches.items()
        }
        return cls(tuple(keys), discrete, switches, comes_with, members)

    @cached_property
    def names(self) -> list[str]:
        """The switches, sorted."""
        return sorted(set(self.switches.values()))

    @cached_property
    def seen(self) -> list[Branch]:
        """The branches with trials that are still possible, those with the most trials first."""
        found = [
            self._branch({name: v for name, v in zip(self.names, values, strict=True) if v is not None}, at)
            for values, at in self.members.items()
        ]
        return sorted(filter(self._is_possible, found), key=lambda branch: -len(branch.rows))

    def branches(self, most: int) -> list[Branch]:
        """One branch for each switch value without trials, and the `most` seen branches with the most trials."""
        rows = tuple(i for at in self.members.values() for i in at)
        # After a change of ranges no seen combination of switches may be possible: then the switches vary freely.
        return self._unseen() + self.seen[:most] or [Branch({}, self.keys, tuple(sorted(rows)))]

    def crossings(self, branch: Branch) -> list[Branch]:
        """Neighbouring branches without trials: one switch has another value, which was seen in some other branch."""
        settings = [seen.setting for seen in self.seen]
        out = []
        for name in branch.setting:
            for value in self.discrete[name]:
                host = next((setting for setting in settings if setting.get(name) == value), None)
                if value == branch.setting[name] or host is None:
                    continue
                # Switches that depend on this one take their values from the other branch.
                kept = {key: v for key, v in branch.setting.items() if not self._is_under(key, name)}
                under = {key: v for key, v in host.items() if self._is_under(key, name)}
                setting = {**kept, **under, name: value}
                if setting not in settings:
                    out.append(self._branch(setting, ()))
        return out

    def _branch(self, setting: Point, rows: Sequence[int]) -> Branch:
        free = [
            key
            for key in self.keys
            if key not in self.names
            and (key not in self.switches or setting.get(self.switches[key]) in self.comes_with[key])
        ]
        return Branch(setting, tuple(free), tuple(rows))

    def _unseen(self) -> list[Branch]:
        """Branches of switch values without trials, in which no parameter that depends on the switch is active."""
        out = []
        for name in self.names:
            at = self.names.index(name)
            values = {setting[at] for setting in self.members}
            host = next((branch for branch in self.seen if name in branch.setting), None)
            for value in self.discrete[name]:
                if value in values:
                    continue
                if name not in self.switches:
                    free = tuple(key for key in self.keys if key not in self.switches and key != name)
                    out.append(Branch({name: value}, free, ()))
                elif host is not None:
                    kept = {key: v for key, v in host.setting.items() if not self._is_under(key, name)}
                    out.append(self._branch({**kept, name: value}, ()))
        return out

    def _is_under(self, key: str, switch: str) -> bool:
        """Whether the key depends on the switch, directly or through other switches."""
        above = self.switches.get(key)
        return above is not None and (above == switch or self._is_under(above, switch))

    def _is_possible(self, branch: Branch) -> bool:
        """Whether the values of all switches are within their present ranges."""
        return all(
            any(math.isclose(value, other, rel_tol=1e-9, abs_tol=1e-12) for other in self.discrete[name])
            for name, value in branch.setting.items()
        )


def declared_branches(space: Space, rows: Sequence[Point], limit: int, rng: np.random.Generator) -> list[Branch]:
    """The branches of a space with declared conditions.

    If there are more than `limit`, they are the `limit` branches with the most trials and `limit` random ones.

    Args:
        space: the space.
        rows: values of the trials, by key.
        limit: number of branches, see above.
        rng: generator of the random branches.
    """
    switches = {p.column_key(name): p for name, p in space.items if name in space.switches}
    members: dict[tuple[tuple[str, float], ...], list[int]] = {}
    for i, row in enumerate(rows):
        members.setdefault(tuple((key, row[key]) for key in switches if key in row), []).append(i)
    settings = space.settings(limit)
    if settings is None:
        most = sorted(members, key=lambda key: -len(members[key]))[:limit]
        settings = [*map(dict, most), *(_random_setting(space, switches, rng) for _ in range(limit))]
    out = {}
    for setting in settings:
        key = tuple((switch, setting[switch]) for switch in switches if switch in setting)
        out[key] = Branch(dict(key), tuple(space.free_in(setting)), tuple(members.get(key, ())))
    return list(out.values())


def _random_setting(space: Space, switches: Mapping[str, Parameter], rng: np.random.Generator) -> dict[str, float]:
    values = {key: switch.internal_values for key, switch in switches.items()}
    return space.active_part({key: own[rng.integers(len(own))] for key, own in values.items()})
