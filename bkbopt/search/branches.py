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
from bkbopt.search.trials.presence import MAX_SWITCH_VALUES, Pattern, Presence
from bkbopt.spaces.space import Parameter, Space

__all__ = ["Branch", "Branching", "declared_branches", "inferred"]


@dataclass(frozen=True)
class Branch:
    """A setting of the switches, with the columns that vary in it.

    Attributes:
        setting: values of the active switches, in internal form.
        free: keys of the columns that vary.
        n_trials: number of trials in this branch.
    """

    setting: Point
    free: tuple[str, ...]
    n_trials: int

    def permits(self, fixed: Point) -> bool:
        """Whether no switch has another value than the fixed one."""
        return all(self.setting.get(key, value) == value for key, value in fixed.items())

    def has(self, fixed: Point) -> bool:
        """Whether the fixed parameters are active, and no switch has another value than the fixed one."""
        return self.permits(fixed) and all(key in self.setting or key in self.free for key in fixed)


def _switches_of(presence: Presence, keys: Sequence[str], discrete: Sequence[str]) -> dict[str, str]:
    """The inferred switch of each conditional key that has one.

    Args:
        presence: which parameters the trials have.
        keys: all keys.
        discrete: keys of the parameters that can be switches.
    """
    patterns = presence.patterns
    sometimes = [key for key in keys if any(key not in pattern for pattern in patterns)]
    switches: dict[str, str] = {}
    for key in sometimes:
        for switch in sorted(discrete, key=lambda name: (name in sometimes, name)):
            if switch != key and _decides(presence.patterns_by_value(switch), key):
                switches[key] = switch
                break
    return switches


def _decides(patterns: Mapping[float | None, set[Pattern]] | None, key: str) -> bool:
    """Whether a key is present or not by the value of a switch, whose `Presence.patterns_by_value` these are."""
    if patterns is None:
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
        counts: numbers of trials with each setting of all switches, in the order of `names`; None for absent ones.
    """

    keys: tuple[str, ...]
    discrete: Mapping[str, Sequence[float]]
    switches: Mapping[str, str]
    comes_with: Mapping[str, set[float]]
    counts: Mapping[tuple[float | None, ...], int]

    @classmethod
    def of(cls, presence: Presence, keys: Sequence[str], discrete: Mapping[str, Sequence[float]]) -> "Branching":
        """Infer the switches from the parameters that the trials have."""
        switches = _switches_of(presence, keys, list(discrete))
        comes_with = dict[str, set[float]]()
        for key, switch in switches.items():
            by_value = presence.patterns_by_value(switch) or {}
            found = (v for v, patterns in by_value.items() if any(key in pattern for pattern in patterns))
            comes_with[key] = {v for v in found if v is not None}
        return cls(tuple(keys), discrete, switches, comes_with, presence.settings(sorted(set(switches.values()))))

    @cached_property
    def names(self) -> list[str]:
        """The switches, sorted."""
        return sorted(set(self.switches.values()))

    @cached_property
    def seen(self) -> list[Branch]:
        """The branches with trials that are still possible, those with the most trials first."""
        found = [
            self._branch({name: v for name, v in zip(self.names, values, strict=True) if v is not None}, n_trials)
            for values, n_trials in self.counts.items()
        ]
        return sorted(filter(self._is_possible, found), key=lambda branch: -branch.n_trials)

    def branches(self, most: int, fixed: Point | None = None) -> list[Branch]:
        """One branch for each switch value without trials, and the `most` seen branches with the most trials.

        They are the branches that have the fixed values; if there are none, those that permit them, or all.
        """
        every, fixed = self._unseen() + self.seen, fixed or {}
        for found in ([b for b in every if b.has(fixed)], [b for b in every if b.permits(fixed)], every):
            if found:
                return found[: most + sum(not branch.n_trials for branch in found)]
        # After a change of ranges no seen combination of switches may be possible: then the switches vary freely.
        return [Branch({}, self.keys, sum(self.counts.values()))]

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
                    out.append(self._branch(setting, 0))
        return out

    def _branch(self, setting: Point, n_trials: int) -> Branch:
        free = [
            key
            for key in self.keys
            if key not in self.names
            and (key not in self.switches or setting.get(self.switches[key]) in self.comes_with[key])
        ]
        return Branch(setting, tuple(free), n_trials)

    def _unseen(self) -> list[Branch]:
        """Branches of switch values without trials, in which no parameter that depends on the switch is active."""
        out = []
        for at, name in enumerate(self.names):
            values = {setting[at] for setting in self.counts}
            host = next((branch for branch in self.seen if name in branch.setting), None)
            for value in self.discrete[name]:
                if value in values:
                    continue
                if name not in self.switches:
                    free = tuple(key for key in self.keys if key not in self.switches and key != name)
                    out.append(Branch({name: value}, free, 0))
                elif host is not None:
                    kept = {key: v for key, v in host.setting.items() if not self._is_under(key, name)}
                    out.append(self._branch({**kept, name: value}, 0))
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


def inferred(presence: Presence, parameters: Mapping[str, Parameter]) -> Branching:
    """The branching of parameters by key, inferred from the trials; one with too many values is no switch."""
    few = {key: p for key, p in parameters.items() if p.n_values and p.n_values <= MAX_SWITCH_VALUES}
    discrete = {key: p.internal_values for key, p in few.items()}
    return Branching.of(presence, list(parameters), discrete)


def declared_branches(
    space: Space, presence: Presence, limit: int, rng: np.random.Generator, fixed: Point
) -> list[Branch]:
    """The branches of a space with declared conditions that have the fixed values.

    If there are more than `limit`, they are the `limit` branches with the most trials and `limit` random ones.

    Args:
        space: the space.
        presence: which parameters the trials have.
        limit: number of branches, see above.
        rng: generator of the random branches.
        fixed: the fixed values, of parameters that can be active together.
    """
    switches = {p.column_key(name): p for name, p in space.items if name in space.switches}
    counts = {
        tuple((key, value) for key, value in zip(switches, values, strict=True) if value is not None): n_trials
        for values, n_trials in presence.settings(tuple(switches)).items()
    }
    settings = space.settings(limit, fixed)
    if settings is None:
        needed = _needed(space, fixed)
        having = [key for key in counts if all(dict(key).get(name) in own for name, own in needed.items())]
        most = sorted(having, key=lambda key: -counts[key])[:limit]
        values = {key: switch.internal_values for key, switch in switches.items()} | needed
        random = ({key: own[rng.integers(len(own))] for key, own in values.items()} for _ in range(limit))
        settings = [*map(dict, most), *map(space.active_part, random)]
    out = {}
    for setting in settings:
        key = tuple((switch, setting[switch]) for switch in switches if switch in setting)
        out[key] = Branch(dict(key), tuple(space.free_in(setting)), counts.get(key, 0))
    return list(out.values())


def _needed(space: Space, fixed: Point) -> dict[str, tuple[float, ...]]:
    """The values of switches, by key, with which the fixed parameters are active and have their values."""
    keys = {name: parameter.column_key(name) for name, parameter in space.items}
    conditions, names = space.conditions, [name for name, key in keys.items() if key in fixed]
    out: dict[str, tuple[float, ...]] = {keys[name]: (fixed[keys[name]],) for name in names if name in space.switches}
    while names:
        for parent, values in conditions.get(names.pop(), {}).items():
            out[keys[parent]] = tuple(value for value in out.get(keys[parent], values) if value in values)
            names.append(parent)
    return out
