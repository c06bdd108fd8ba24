"""The constraint on parameters that is known before an evaluation: a function, or rules as text."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.base import Params
from bkbopt.spaces.parameters import Categorical, Ordinal
from bkbopt.spaces.rules import Rules, Values, are_rules
from bkbopt.spaces.space import Space
from bkbopt.spaces.values import as_python, is_real, shown

__all__ = ["Feasible", "KnownConstraint", "as_feasible", "changed", "check_as_kept", "of_file", "stored"]

#: What users give: a function of the parameters, a rule, or a list of rules.
Feasible = Callable[[Params], bool] | str | Sequence[str]


@dataclass(frozen=True, eq=False)
class KnownConstraint:
    """A constraint on parameters.

    Attributes:
        given: the user's function or rules; None if there is that of the pool only.
        own: the function of a product pool, or None.
        candidates: the space or pool whose parameters are in the rules.
    """

    given: Rules | Callable[[Params], bool] | None
    own: Callable[[Params], bool] | None = None
    candidates: Space | Arms | None = None

    def __call__(self, params: Params) -> bool:
        """Whether it holds; raises `ArgumentTypeError` if a function does not answer."""
        return all(_answer(part(params)) for part in (self.given, self.own) if part is not None)

    @property
    def rules(self) -> list[str] | None:
        """The texts of rules; None for a function."""
        return list(self.given.texts) if isinstance(self.given, Rules) else None


def as_feasible(
    given: Any, candidates: Space | Arms, own: Callable[[Params], bool] | None = None
) -> KnownConstraint | None:
    """The constraint that a user gives, and that of a product pool, `own`; an empty list is none.

    Raises:
        ArgumentTypeError: neither a function nor text.
        ArgumentError: text that is no rule about these parameters.
    """
    if are_rules(given):
        if own is not None and given:
            raise ArgumentError(
                "feasible: expected a function, since the product has one, got text; write one function of both."
            )
        given = Rules.of(given, _values_of(candidates)) if given or isinstance(given, str) else None
    elif not (given is None or callable(given)):
        raise ArgumentTypeError(
            "feasible: expected a callable (params) -> bool, or text as 'x + y <= 1', or a list of such text, got "
            f"{shown(given)} of type {type(given).__name__}."
        )
    return None if given is None and own is None else KnownConstraint(given, own, candidates)


def changed(current: KnownConstraint | None, given: Any, candidates: Space | Arms) -> KnownConstraint | None:
    """The constraint on other candidates: what a user gives, or without it the current one.

    Raises the errors of `as_feasible`: rules must be about the new parameters.
    """
    own = None if current is None else current.own
    if given is not None or current is None or current.rules is None:
        return as_feasible(current.given if given is None and current is not None else given, candidates, own)
    try:
        return as_feasible(current.rules, candidates)
    except ArgumentError as error:
        raise ArgumentError(f"{error} Pass feasible= with the rules from now on, [] for none.") from None


def stored(constraint: KnownConstraint | None) -> list[str] | bool:
    """What a log keeps: the rules; of a function that there is one."""
    return constraint is not None and (constraint.rules or True)


def check_as_kept(kept: Any, given: Any) -> None:
    """Refuse what is given for a log, other than the rules that it has kept or a function where it has none."""
    texts = [text.strip() for text in ([given] if isinstance(given, str) else given)] if are_rules(given) else None
    if not (callable(given) or texts is not None) or texts == (kept or []):
        return  # left out, the same, or neither text nor a function, which is refused elsewhere
    if isinstance(kept, list) or texts is not None:
        there = ("a function" if kept else "none") if isinstance(kept, bool) else shown(kept)
        here = "a function" if texts is None else f"text, {shown(texts)}"
        raise ArgumentError(
            f"feasible: expected what the log was made with ({there}), got {here}"
            "; leave rules out, and change them later with set_space(opt.space, feasible=...), or set_pool."
        )


def of_file(kept: Any, current: KnownConstraint | None, candidates: Space | Arms) -> KnownConstraint | None:
    """The constraint of a log, which has kept `stored`; functions are those of this process, `current`.

    Where it has none, asking is refused, but not telling.

    Raises:
        ArgumentError: the log has rules, and the product of this process a function.
        ValueError: an invalid entry of the log.
    """
    if kept is False:
        return None if current is None or current.rules or current.given is _missing else current
    if isinstance(kept, list) and kept and are_rules(kept):
        if current is not None and current.rules == kept and current.candidates is candidates:
            return current
        if current is not None and current.own is not None:
            raise ArgumentError(
                f"feasible: expected a product without a function, since the log has rules ({shown(kept)}), got one "
                "with; make the pool without feasible=."
            )
        try:
            return as_feasible(kept, candidates)
        except ArgumentError as error:
            raise ValueError(f"invalid rules ({error})") from error
    if kept is not True:
        raise ValueError("an invalid entry about feasible=")
    return KnownConstraint(_missing) if current is None or current.rules is not None else current


def _missing(_: Params) -> bool:
    raise ArgumentError(
        "feasible: expected the function that another process has set in place of rules; open the log again with it."
    )


def _values_of(candidates: Space | Arms) -> Values:
    """The values of the parameters of a space, or of the columns of a pool, for rules."""
    if isinstance(candidates, Space):
        listed = {n: p for n, p in candidates.parameters.items() if isinstance(p, Categorical | Ordinal)}
        return {name: listed[name].listed if name in listed else None for name in candidates.parameters}
    columns = candidates.columns
    if columns is None:
        return {}
    flags = {j: (False, True) for j, kind in enumerate(columns.kinds) if kind == "b"}
    values = {**flags, **columns.choices}
    return {name: values.get(j) for j, name in enumerate(columns.names)}


def _answer(given: Any) -> bool:
    """What a constraint on parameters answers; 0 and 1 are answers too.

    Other numbers are refused: in some packages they are slacks or excesses, and nearly all are true.

    Raises:
        ArgumentTypeError: no answer.
    """
    if isinstance(given, bool):
        return given
    is_single = isinstance(given, np.ndarray | Tensor) and math.prod(given.shape) == 1
    answer = as_python(given.reshape(()) if is_single else given)
    if isinstance(answer, bool) or (is_real(answer) and answer in (0, 1)):
        return bool(answer)
    raise ArgumentTypeError(
        f"feasible: expected True or False, got {shown(given)} of type {type(given).__name__}; return a comparison, as "
        'params["x"] + params["y"] <= 1.'
    )
