"""Faults of the spaces: parameters, conditions, encodings and pools."""

from benchmarks.mutants.fault import Fault

__all__ = ["SPACES"]

COLUMNS = ("spaces/test_columns.py",)
CONDITIONS = ("spaces/test_conditions.py",)
ENCODING = ("spaces/test_encoding.py",)
POOL = ("spaces/test_pool.py",)
PRODUCT = ("spaces/test_product_pool.py",)
RULES = ("spaces/test_rules.py",)
SUCCESSION = ("spaces/test_succession.py",)
SPACE = ("spaces/test_space_values.py", "spaces/test_space.py")

SPACES = (
    Fault(
        "a comment hides the lines behind it",
        "spaces/rules.py",
        r"|(#[^\n\r]*)|",
        "|(#.*)|",
        RULES,
    ),
    Fault(
        "a rule without a value holds",
        "spaces/rules.py",
        "except (ArithmeticError, ValueError):  # 1 / 0, exp(1000), log(-1)\n        return False",
        "except (ArithmeticError, ValueError):\n        return True",
        RULES,
    ),
    Fault(
        "of names that Python normalises to one the first is meant",
        "spaces/rules.py",
        "name = alike[0] if len(alike) == 1 else name",
        "name = alike[0] if alike else name",
        RULES,
    ),
    Fault(
        "long tails of a pool's columns are not compressed",
        "spaces/columns.py",
        "is_long = LONG * 2.0 * half < span <= FARTHEST * half",
        "is_long = False",
        COLUMNS,
    ),
    Fault(
        "a later pool has no tails",
        "spaces/columns.py",
        "return replace(self, choices=choices)",
        "return replace(self, choices=choices, tails={})",
        COLUMNS,
    ),
    Fault(
        "the tails of a product are those of its first parts' columns",
        "spaces/product_pool.py",
        "tails.update({first + j: own_tails for j, own_tails in own.tails.items()})",
        "tails.update(own.tails)",
        COLUMNS,
    ),
    Fault(
        "a worker that the scheduler takes for alive is believed to be",
        "spaces/remote.py",
        "function is not _present and self._asked(_present) is not None",
        "True",
        ("spaces/test_remote.py",),
    ),
    Fault(
        "a trial of an earlier pool has the name of another row",
        "spaces/arms.py",
        "point is None or self.point(row) == point",
        "True",
        ("optimizer/test_labels.py",),
    ),
    Fault(
        "slopes of a narrow range are those of the whole column",
        "spaces/encoding.py",
        "slopes[:, self.columns] * self.width",
        "slopes[:, self.columns]",
        ENCODING,
    ),
    Fault(
        "whole numbers on a log scale go to the farther neighbour",
        "spaces/scales.py",
        "self.encoded(below + 1) - unit < unit - self.encoded(below)",
        "self.encoded(below + 1) - unit > unit - self.encoded(below)",
        SPACE,
    ),
    Fault(
        "a grid loses its last point",
        "spaces/numeric.py",
        "unit)) <= self.high)",
        "unit)) < self.high)",
        SPACE,
    ),
    Fault(
        "one of two conditions is enough",
        "spaces/conditions.py",
        "masks[name] & mask if name in masks else mask",
        "masks[name] | mask if name in masks else mask",
        CONDITIONS,
    ),
    Fault(
        "a parameter is active under an inactive one",
        "spaces/conditions.py",
        "table[positions[parent]] & masks.get(parent, True)",
        "table[positions[parent]]",
        CONDITIONS,
    ),
    Fault(
        "grids that miss each other are merged as one",
        "spaces/encoding.py",
        "same = old.step == new.step and (old.low - new.low) % old.step == 0",
        "same = old.step == new.step",
        ENCODING,
    ),
    Fault(
        "a choice that left a list has the place of one that came",
        "spaces/numbering.py",
        "first = at + step",
        "first = at + 1.0",
        SUCCESSION,
    ),
    Fault(
        "choices of a new list are numbered anew",
        "spaces/choices.py",
        "positions = [None if position is None else int(position) for position in found]",
        "positions = list(range(len(known.values)))",
        SUCCESSION,
    ),
    Fault(
        "a point of a choice that was removed counts as the nearest one",
        "spaces/encoding.py",
        "        if self.has_all:\n            return fixed",
        "        if True:\n            return fixed",
        SUCCESSION,
    ),
    Fault(
        "new choices of a pool take the codes of the old ones",
        "spaces/columns.py",
        "every = tuple(dict.fromkeys([*known, *own]))",
        "every = tuple(dict.fromkeys([*own, *known]))",
        POOL,
    ),
    Fault(
        "ordered categories are choices without an order",
        "spaces/tables.py",
        '(RANKED if ordered else "O")',
        '"O"',
        ("spaces/test_ordered_columns.py",),
    ),
    Fault(
        "ordered categories may change their order",
        "spaces/columns.py",
        "if ranked and not kept:",
        "if False:",
        ("spaces/test_ordered_columns.py",),
    ),
    Fault(
        "the last of several values decides over the rows that match",
        "spaces/pool.py",
        "out &= self.table[:, self.names.index(name)] == number",
        "out = self.table[:, self.names.index(name)] == number",
        POOL,
    ),
    Fault(
        "a pool's new objects are numbered in the pool before",
        "spaces/pool.py",
        "dict(like._numbers)",
        "like._numbers",
        POOL,
    ),
    Fault(
        "a point of a pool may be farther than squares reach",
        "spaces/columns.py",
        "if not reached <= FARTHEST:",
        "if False:",
        ("faults/test_crafted_logs.py",),
    ),
    Fault(
        "the first part of a product changes fastest",
        "spaces/rows.py",
        "math.prod(self.sizes[p + 1 :])",
        "math.prod(self.sizes[:p])",
        PRODUCT,
    ),
    Fault(
        "a point of a product is one of its rows only",
        "spaces/product_pool.py",
        "self.X.combined([np.array(entries) for entries in choices])",
        "self.X.combined([np.array(entries[:1]) for entries in choices])",
        PRODUCT,
    ),
    Fault(
        "a column that a label contradicts is taken",
        "spaces/product_pool.py",
        "if point.setdefault(name, value) != value:",
        "if point.setdefault(name, value) is None:",
        PRODUCT,
    ),
    Fault(
        "codes of a part are taken for those of the pool",
        "spaces/stored.py",
        "        if part.choices[j] != values[: len(part.choices[j])]:",
        "        if False:",
        ("conformance/test_row_sources.py",),
    ),
    Fault(
        "a file that was written anew is taken for the one before",
        "spaces/sources.py",
        "now.st_mtime_ns, now.st_size",
        "0, 0",
        ("spaces/test_stored.py",),
    ),
    Fault(
        "a parameter that is not active moves",
        "spaces/moves.py",
        "            is_move &= active[:, self._columns]\n",
        "            pass\n",
        ("spaces/test_conditions.py",),
    ),
    Fault(
        "neighbours of a long grid are given twice",
        "spaces/moves.py",
        "is_move[:, 1:] &= others[:, 1:] != others[:, :-1]",
        "pass",
        ("spaces/test_space.py",),
    ),
    Fault(
        "a part of a stretched range has the reach of the whole",
        "spaces/stretched.py",
        "whole.is_low, whole.reach + max(away, 0.0))",
        "whole.is_low, whole.reach)",
        ("spaces/test_stretched.py",),
    ),
    Fault(
        "grids with a stretched upper end are not mirrored",
        "spaces/stretched.py",
        "self._from_end.encoded(self.n - 1 - positions)",
        "self._from_end.encoded(positions)",
        ("spaces/test_stretched.py",),
    ),
    Fault(
        "columns with zeros are said to span decades",
        "spaces/decades.py",
        "and numbers.min() > 0.0 and",
        "and",
        ("spaces/test_decades.py",),
    ),
)
