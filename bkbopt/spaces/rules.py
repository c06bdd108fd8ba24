"""Constraints on parameters that are written as text, as "0.1 <= x - y <= 1" or "kind == 'fast' or depth <= 3".

Unlike functions they are kept in a log, known to all processes that share it, and can be written in a TOML file.

| form             | text                                                                                             |
| ---------------- | ------------------------------------------------------------------------------------------------ |
| parameters       | by name; names with other characters than letters, digits and _ between backticks: `batch size`  |
| arithmetic       | + - * / // % ** of numbers, and `FUNCTIONS` of them                                              |
| comparisons      | < <= > >= of numbers, also chained; == != in, not in (a list) of numbers and choices             |
| combinations     | and, or, not                                                                                     |

Where a parameter is inactive its comparisons are neither true nor false, as those of null in SQL: "x <= 1 and z > 0" is
false where x is too large, whether z is active or not. A rule that is neither holds, as a CHECK of SQL. It does not
hold where a part that decides has no value, as 1 / x at 0. The text is translated to closures over a few kinds of nodes
and never run as Python: a log may come from anywhere.
"""

import ast
import difflib
import keyword
import math
import operator
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bkbopt.errors import ArgumentError
from bkbopt.spaces.base import Params
from bkbopt.spaces.three_valued import Read, combined, if_active, inverted
from bkbopt.spaces.values import as_float, is_real, same, shown

__all__ = ["FUNCTIONS", "Rules", "Values", "are_rules"]

#: The values of each parameter, or column of a pool, by name; None for numbers of a range.
Values = Mapping[str, Sequence[Any] | None]

#: Functions in rules; `log` is the natural logarithm.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": math.ceil,
    "exp": math.exp,
    "floor": math.floor,
    "log": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "max": max,
    "min": min,
    "round": round,
    "sqrt": math.sqrt,
}
_OF_SEVERAL = ("max", "min")


def _product(a: Any, b: Any) -> Any:
    """The product, as a double beyond their range: products of whole numbers would grow from factor to factor."""
    product = a * b
    return as_float(product) if type(product) is int and product.bit_length() > LARGEST else product


_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _product,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: math.pow,  # of floats: whole powers of whole numbers may have any number of digits
}
_ORDER: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
#: Longest text of a rule, and most levels of brackets and operators in it.
LONGEST, DEEPEST = 10_000, 100
#: A shorter text does not overflow the stack of Python's parser, which it calls a lack of memory.
SHORT = 100
#: Most bits of a whole number that is the product of others.
LARGEST = 1023
#: Words for operators of other languages.
_INSTEAD = {"&": "and", "|": "or", "!": "not", "^": "**", "=": "=="}
_SWAPPED = {"=>": ">=", "=<": "<=", "<>": "!="}
#: Characters that Python's parser does not read: null, and halves of surrogate pairs.
_UNREADABLE = re.compile("[\0\ud800-\udfff]")
_WORDS = "expected and, or, not between comparisons, in place of & and |"
#: Names between backticks, text between quotes, comments, and ends of lines.
_TOKENS = re.compile(r"`([^`]+)`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|(#[^\n\r]*)|([\n\r])", re.DOTALL)


def are_rules(given: object) -> bool:
    """Whether a constraint on parameters is given as text: a rule, or a list of rules."""
    is_list = isinstance(given, list | tuple) and all(isinstance(text, str) for text in given)
    return isinstance(given, str) or is_list


@dataclass(frozen=True)
class Rules:
    """Constraints on parameters, all of which must hold; see the module's text.

    Attributes:
        texts: their texts.
        names: the names of the parameters in them.
    """

    texts: tuple[str, ...]
    names: frozenset[str] = field(repr=False, compare=False)
    _parsed: tuple[Read, ...] = field(repr=False, compare=False)

    @classmethod
    def of(cls, given: Any, values: Values) -> "Rules":
        """The rules of a text, or of a list of texts, about parameters with these values.

        Raises:
            ArgumentError: no such rule, with what to write in its place: unknown names or choices, a comparison of
                different kinds, or no comparison at all.
        """
        texts = tuple(text.strip() for text in ([given] if isinstance(given, str) else given))
        parsers = [_Parser(text, values) for text in texts]
        reads = tuple(parser.parsed() for parser in parsers)
        return cls(texts, frozenset[str]().union(*(parser.names for parser in parsers)), reads)

    def __call__(self, params: Params) -> bool:
        """Whether all rules hold for parameters, of which inactive ones are left out."""
        return all(_holds(read, params) for read in self._parsed)


def _holds(read: Read, params: Params) -> bool:
    try:
        answer = read(params)
    except (ArithmeticError, ValueError):  # 1 / 0, exp(1000), log(-1)
        return False
    return answer is None or bool(answer)


class _Parser:
    """The translation of one rule.

    Args:
        text: the rule.
        values: the parameters.
    """

    def __init__(self, text: str, values: Values) -> None:
        self.text, self.values = text, values
        self.names: set[str] = set()
        if len(text) > LONGEST:
            raise ArgumentError(f"feasible: expected rules of {LONGEST} characters at most, got {len(text)}.")
        if found := _UNREADABLE.search(text):
            raise self._wrong(f"expected text without {'null' if found[0] == chr(0) else 'surrogate'} characters")
        self._quoted: dict[str, str] = {}
        #: What names of placeholders begin with: more underscores in a row than there are in the text.
        self._prefix = "_" * (1 + max(map(len, re.findall("_+", text)), default=0))
        #: The text in one line, with placeholders and without comments, of which the syntax tree is.
        self._source = _TOKENS.sub(self._in_one_line, text).strip()
        self._bytes = self._source.encode()

    def parsed(self) -> Read:
        """Whether the rule holds, as a function of all parameters; `names` has those in it from then on."""
        try:
            tree = ast.parse(self._source, mode="eval").body
        except (SyntaxError, MemoryError, RecursionError) as error:
            if isinstance(error, MemoryError) and len(self.text) < SHORT:
                raise
            raise self._wrong("expected a comparison, as 'x + y <= 1'", self._advice(error)) from None
        read = self._flag(tree, 0)
        if not self.names:
            raise self._wrong(f"expected parameters ({self._known()}), found none")
        return read

    # -- names and messages ------------------------------------------------------------------------------------------

    def _in_one_line(self, match: re.Match[str]) -> str:
        """A name for a quoted name, which Python's parser takes; a space for a comment or the end of a line."""
        if match[1] is not None:
            name = f"{self._prefix}{len(self._quoted)}_"
            self._quoted[name] = match[1]
            return f" {name} "
        if match[2] is not None or match[3] is not None:
            return " "
        return match[0].replace("\n", "\\n").replace("\r", "\\r")

    def _wrong(self, expected: str, advice: str = "") -> ArgumentError:
        advice = advice or self._unquoted()
        end = "" if advice.endswith("?") else "."
        return ArgumentError(f"feasible: {expected}, got the rule {shown(self.text)}{advice}{end}")

    def _advice(self, error: BaseException) -> str:
        bare = _TOKENS.sub("", self.text)
        for sign, instead in _SWAPPED.items():
            if sign in bare:
                return f"; write {instead} for {sign}"
        found = next((sign for sign in ("&", "|", "^", "!") if sign in bare.replace("!=", "")), None)
        if found is None and re.search(r"(?<![<>=!])=(?!=)", bare):
            found = "="
        if found is not None:
            return f"; write {_INSTEAD[found]} for {found}"
        if advice := self._unquoted():
            return advice
        return f" ({error.msg})" if isinstance(error, SyntaxError) else "; it is nested too deeply"

    def _unquoted(self) -> str:
        """Advice about the first name that lacks its backticks, if there is one."""
        bare = _TOKENS.sub("", self.text)
        words = (name for name in self.values if not name.isidentifier() or keyword.iskeyword(name))
        return next((f"; write `{name}` between backticks" for name in words if name in bare), "")

    def _known(self) -> str:
        return shown(list(self.values)) if self.values else "this search has none with names"

    def _part(self, node: ast.AST) -> str:
        text = ast.get_source_segment(self._source, node) or ""
        for placeholder, name in self._quoted.items():
            text = text.replace(placeholder, f"`{name}`")
        return shown(text)

    def _name(self, node: ast.Name) -> str:
        # Python's parser normalises names: the micro sign becomes the letter.
        written = self._bytes[node.col_offset : node.end_col_offset].decode()
        name = self._quoted.get(written, written)
        if name not in self.values and name == written:
            alike = [other for other in self.values if unicodedata.normalize("NFKC", other) == node.id]
            name = alike[0] if len(alike) == 1 else name
        if name not in self.values:
            near = difflib.get_close_matches(name, self.values, 1)
            advice = self._unquoted() or (f"; do you mean {near[0]!r}?" if near else "")
            if name in FUNCTIONS:
                advice = f"; {name} is a function: {name}(...)"
            raise self._wrong(f"expected names of parameters ({self._known()}), not {shown(name)}", advice)
        self.names.add(name)
        return name

    def _choices(self, node: ast.AST) -> Sequence[Any] | None:
        """The choices that a name stands for, if it is one of a parameter with other values than numbers."""
        if not isinstance(node, ast.Name):
            return None
        values = self.values[self._name(node)]
        return None if values is None or all(map(is_real, values)) else values

    # -- flags -------------------------------------------------------------------------------------------------------

    def _flag(self, node: ast.AST, depth: int) -> Read:
        """Whether a condition holds."""
        depth = self._deeper(depth)
        match node:
            case ast.BoolOp(op=op, values=parts):
                reads = [self._flag(part, depth) for part in parts]
                return combined(reads, isinstance(op, ast.Or))
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return inverted(self._flag(part, depth))
            case ast.Compare(left=left, ops=ops, comparators=others):
                terms = [left, *others]
                pairs = zip(terms, ops, terms[1:], strict=False)
                reads = [if_active(self._compared(a, op, b, depth)) for a, op, b in pairs]
                return reads[0] if len(reads) == 1 else combined(reads, False)
            case ast.Name() if (choices := self._choices(node)) and all(isinstance(c, bool) for c in choices):
                return if_active(operator.itemgetter(self._name(node)))
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
                raise self._wrong(_WORDS)
        raise self._wrong(f"expected a comparison, as 'x + y <= 1', in place of {self._part(node)}")

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr, depth: int) -> Read:
        if isinstance(op, ast.In | ast.NotIn):
            return self._among(left, right, depth, negated=isinstance(op, ast.NotIn))
        is_choice = any(self._choices(node) is not None or _is_word(node) for node in (left, right))
        if isinstance(op, ast.Eq | ast.NotEq):
            if is_choice:
                read = self._equal(left, right)
                return read if isinstance(op, ast.Eq) else lambda params: not read(params)
            a, b = self._number(left, depth), self._number(right, depth)
            equal = isinstance(op, ast.Eq)
            return lambda params: (a(params) == b(params)) is equal
        if type(op) not in _ORDER:
            raise self._wrong("expected one of < <= > >= == != in, in place of is")
        if is_choice:
            raise self._wrong(f"expected == or != for {self._part(left)} and {self._part(right)}, which are no numbers")
        compare, a, b = _ORDER[type(op)], self._number(left, depth), self._number(right, depth)
        return lambda params: compare(a(params), b(params))

    def _equal(self, left: ast.expr, right: ast.expr) -> Read:
        """Whether a parameter with choices has a value, or the same value as another one."""
        if self._choices(left) is None:
            left, right = right, left
        choices = self._choices(left)
        if choices is None or not isinstance(left, ast.Name):
            raise self._wrong(
                f"expected a number, or a parameter with choices, beside == in place of {self._part(left)}"
            )
        name = self._name(left)
        if isinstance(right, ast.Name) and self._choices(right) is not None:
            other = self._name(right)
            return lambda params: same(params[name], params[other])
        value = self._constant(right, name, choices)
        return lambda params: same(params[name], value)

    def _among(self, left: ast.expr, right: ast.expr, depth: int, *, negated: bool) -> Read:
        if not isinstance(right, ast.List | ast.Tuple | ast.Set):
            raise self._wrong(f"expected a list behind in, as ['a', 'b'], in place of {self._part(right)}")
        choices = self._choices(left)
        if choices is not None and isinstance(left, ast.Name):
            name = self._name(left)
            values = [self._constant(item, name, choices) for item in right.elts]
            return lambda params: any(same(params[name], value) for value in values) is not negated
        number, others = self._number(left, depth), [self._number(item, depth) for item in right.elts]

        def is_among(params: Params) -> bool:
            value = number(params)  # once: both may be long
            return any(value == other(params) for other in others) is not negated

        return is_among

    def _constant(self, node: ast.expr, name: str, choices: Sequence[Any]) -> Any:
        """A value of a parameter with these choices."""
        try:
            value = ast.literal_eval(node)
        except (TypeError, ValueError):  # a list in a set
            raise self._wrong(f"expected a value of {name!r}, in place of {self._part(node)}") from None
        if not any(same(value, choice) for choice in choices):
            raise self._wrong(f"expected a value of {name!r} (of {shown(list(choices))}), not {shown(value)}")
        return value

    # -- numbers -----------------------------------------------------------------------------------------------------

    def _number(self, node: ast.AST, depth: int) -> Read:
        """The value of an arithmetic expression."""
        depth = self._deeper(depth)
        match node:
            case ast.Constant(value=value) if is_real(value):
                return lambda _: value
            case ast.Name() if self._choices(node) is None:
                return operator.itemgetter(self._name(node))
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=part):
                read = self._number(part, depth)
                return (lambda params: -read(params)) if isinstance(op, ast.USub) else read
            case ast.BinOp(op=ast.BitXor()):
                raise self._wrong("expected ** for powers, in place of ^")
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
                raise self._wrong(_WORDS)
            case ast.BinOp(op=op) if type(op) in _ARITHMETIC:
                return self._chain(node, depth)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
                if not (len(args) == 1 and name not in _OF_SEVERAL) and not (len(args) > 1 and name in _OF_SEVERAL):
                    count = "two arguments or more" if name in _OF_SEVERAL else "one argument"
                    raise self._wrong(f"expected {count} of {name}, in place of {self._part(node)}")
                function, reads = FUNCTIONS[name], [self._number(arg, depth) for arg in args]
                return lambda params: function(*(read(params) for read in reads))
            case ast.Call():
                raise self._wrong(f"expected functions among {', '.join(FUNCTIONS)}, in place of {self._part(node)}")
        raise self._wrong(f"expected a number, in place of {self._part(node)}")

    def _chain(self, node: ast.expr, depth: int) -> Read:
        """The value of a - b + c ..., from left to right: sums may have many terms."""
        steps = []
        while isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            steps.append((_ARITHMETIC[type(node.op)], self._number(node.right, depth)))
            node = node.left
        first = self._number(node, depth)
        steps.reverse()

        def value(params: Params) -> Any:
            total = first(params)
            for combine, read in steps:
                total = combine(total, read(params))
            return total

        return value

    def _deeper(self, depth: int) -> int:
        if depth >= DEEPEST:
            raise self._wrong(f"expected at most {DEEPEST} levels of brackets and operators")
        return depth + 1


def _is_word(node: ast.AST) -> bool:
    """Whether a node is text, a flag or None."""
    return isinstance(node, ast.Constant) and not is_real(node.value)
