"""Spaces that replace one another in a log: a listed value of an earlier space keeps its number."""

from collections.abc import Sequence

from bkbopt.spaces.parameters import Parameter
from bkbopt.spaces.space import Space

__all__ = ["successor"]


def successor(space: Space, earlier: Sequence[object]) -> Space:
    """The space as the one after earlier spaces, the last of which comes last; what is no space is ignored.

    A parameter continues the last one with its name and its kind, see `ParameterBase.after`.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt.spaces.succession import successor
        >>> first, second = bo.Space.parse({"lot": ["a", "b"]}), bo.Space.parse({"lot": ["c", "b"]})
        >>> successor(second, [first]).internal([{"lot": "b"}, {"lot": "c"}])
        [{"lot of ('a', 'b')": 1.0}, {"lot of ('a', 'b')": 2.0}]
    """
    before: dict[tuple[str, type[Parameter]], Parameter] = {}
    for other in earlier:
        if isinstance(other, Space):
            before |= {(name, type(parameter)): parameter for name, parameter in other.items}
    items = [(name, parameter, parameter.after(before.get((name, type(parameter))))) for name, parameter in space.items]
    if all(old is new for _, old, new in items):
        return space
    return Space(tuple((name, new) for name, _, new in items))
