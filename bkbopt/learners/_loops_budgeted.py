"""The rounds of kernel expansions f(x) = sum_i a_i k(s_i, x): predict, see the label, change the expansion.

Every loop takes a `Block` and a `Support` (see `_loops_kernel.py`), the round `first` of the block's first row, and
writes the predictions f_t(x_t) made *before* learning into `p (b,)`. Those that learn begin with row `start`, stop
before a row that would find `room` terms there, and return that row, or b. One row costs one kernel row, O(B d), and
what is said below. y is -1 or +1; `u (b,)` are uniform numbers, one a round whether it is needed or not, so that runs
repeat.
"""

import math

import numpy as np

from bkbopt._support.compiled import compiled, fast
from bkbopt.learners._loops_kernel import Block, Floats, Support, append, inner, kernel_row, put, remove
from bkbopt.learners.losses import loss_slope

__all__ = ["bogd", "bpas", "expand", "forgetron", "kogd", "perceptron", "projectron"]


@compiled
def expand(block: Block, support: Support, p: Floats) -> None:
    """Predict only."""
    k = np.empty(support.weights.shape[0])
    for t in range(block.X.shape[0]):
        kernel_row(block, t, support, k)
        p[t] = inner(k, support.weights, support.size[0])


@compiled
def kogd(
    block: Block,
    support: Support,
    first: int,
    start: int,
    loss: int,
    step: float,
    ridge: float,
    window: int,
    room: int,
    p: Floats,
) -> int:
    """Kernel gradient descent (Kivinen et al. 2001); NORMA with `ridge` and a window of rounds, 0 for no end."""
    k = np.empty(support.weights.shape[0])
    keep = 1.0 - step * ridge
    for t in range(start, block.X.shape[0]):
        if support.size[0] >= room:
            return t
        kernel_row(block, t, support, k)
        n = support.size[0]
        p[t] = inner(k, support.weights, n)
        g = loss_slope(loss, block.y[t], p[t])
        if keep != 1.0:
            scale(support.weights, n, keep)
        if g != 0.0:
            append(block, t, support, -step * g, first)
        if window > 0:
            drop_older(support, first + t + 1 - window)
    return block.X.shape[0]


@compiled
def drop_older(support: Support, born: int) -> None:
    """Drop the terms added before round `born`."""
    j = 0
    while j < support.size[0]:
        if support.born[j] < born:
            remove(support, j)
        else:
            j += 1


@fast
def scale(weights: Floats, n: int, factor: float) -> None:
    """Multiply the first n weights."""
    for j in range(n):
        weights[j] *= factor


@compiled
def perceptron(
    block: Block, support: Support, first: int, start: int, budget: int, room: int, u: Floats, p: Floats
) -> int:
    """The kernel perceptron; with a budget > 0 a mistake at full budget deletes a random term first (RBP).

    Cavallanti, Cesa-Bianchi and Gentile 2007.
    """
    k = np.empty(support.weights.shape[0])
    for t in range(start, block.X.shape[0]):
        if support.size[0] >= room:
            return t
        kernel_row(block, t, support, k)
        p[t] = inner(k, support.weights, support.size[0])
        if block.y[t] * p[t] <= 0.0:
            if support.size[0] == budget > 0:
                remove(support, int(u[t] * budget))
            append(block, t, support, block.y[t], first)
    return block.X.shape[0]


@compiled
def forgetron(
    block: Block,
    support: Support,
    first: int,
    start: int,
    budget: int,
    room: int,
    gram: Floats,
    sums: Floats,
    p: Floats,
) -> int:
    """The self-tuned Forgetron (Dekel, Shalev-Shwartz and Singer 2008).

    `gram (cap, cap)` are the kernel values among the terms, `sums` holds Q and the number of mistakes.
    """
    k = np.empty(support.weights.shape[0])
    for t in range(start, block.X.shape[0]):
        if support.size[0] >= room:
            return t
        kernel_row(block, t, support, k)
        n, y = support.size[0], block.y[t]
        p[t] = inner(k, support.weights, n)
        if y * p[t] > 0.0:
            continue
        sums[1] += 1.0
        k[n] = block.diagonal[t]
        for j in range(n + 1):
            gram[n, j] = gram[j, n] = k[j]
        append(block, t, support, y, first)
        if n < budget:
            continue
        r = int(np.argmin(support.born[: n + 1]))
        a = support.weights[r]
        size = abs(a)
        margin = inner(gram[r], support.weights, n + 1) * (1.0 if a > 0.0 else -1.0)
        phi = shrinkage(size, margin, sums[0], sums[1])
        scale(support.weights, n + 1, phi)
        sums[0] += (size * phi) ** 2 + 2.0 * size * phi * (1.0 - phi * margin)
        for j in range(n + 1):
            gram[r, j] = gram[n, j]
        for j in range(n + 1):
            gram[j, r] = gram[j, n]
        remove(support, r)
    return block.X.shape[0]


@compiled
def shrinkage(size: float, margin: float, Q: float, mistakes: float) -> float:
    """The largest factor phi <= 1 for which the damage stays within its budget of 15/32 a mistake.

    a phi^2 + b phi + c <= 0 with a = d^2 - 2 d mu, b = 2 d, c = Q - (15/32) M.
    """
    a, b, c = size * size - 2.0 * size * margin, 2.0 * size, Q - 15.0 / 32.0 * mistakes
    if a + b + c <= 0.0 or b == 0.0:
        return 1.0
    if a == 0.0:
        return min(1.0, -c / b)
    # The root between 0 and 1 for either sign of a, without cancellation: (-b + sqrt(D)) / (2 a).
    return -2.0 * c / (b + math.sqrt(b * b - 4.0 * a * c))


@compiled
def bpas(block: Block, support: Support, first: int, start: int, budget: int, room: int, C: float, p: Floats) -> int:
    """Budgeted passive-aggressive, the simple variant (Wang and Vucetic 2010): one term is replaced, and no other.

    With the weight b_r below, f(x_t) is the same afterwards whichever term r goes, and so is the loss; the change of f
    is smallest for the term of which the projection on k(x_t, .) leaves the least.
    """
    k = np.empty(support.weights.shape[0])
    for t in range(start, block.X.shape[0]):
        if support.size[0] >= room:
            return t
        kernel_row(block, t, support, k)
        n, y, kt = support.size[0], block.y[t], block.diagonal[t]
        p[t] = inner(k, support.weights, n)
        loss = 1.0 - y * p[t]
        if loss <= 0.0 or kt <= 0.0:
            continue
        tau = min(C, loss / kt)
        if n < budget:
            append(block, t, support, tau * y, first)
            continue
        best, chosen = np.inf, 0
        for r in range(n):
            left = support.weights[r] ** 2 * (support.diagonal[r] - k[r] * k[r] / kt)
            if left < best:
                best, chosen = left, r
        put(block, t, support, chosen, support.weights[chosen] * k[chosen] / kt + tau * y, first)
    return block.X.shape[0]


@compiled
def bogd(
    block: Block,
    support: Support,
    first: int,
    start: int,
    loss: int,
    step: float,
    ridge: float,
    bound: float,
    budget: int,
    room: int,
    uniform: bool,
    u: Floats,
    p: Floats,
) -> int:
    """Budgeted online gradient descent (Zhao et al. 2012): the term to go is drawn, the others make up for it."""
    k = np.empty(support.weights.shape[0])
    a = support.weights
    for t in range(start, block.X.shape[0]):
        if support.size[0] >= room:
            return t
        kernel_row(block, t, support, k)
        n = support.size[0]
        p[t] = inner(k, a, n)
        g = loss_slope(loss, block.y[t], p[t])
        scale(a, n, 1.0 - step * ridge)
        if g == 0.0:
            continue
        if n == budget:
            drop_at_random(support, uniform, u[t])
        append(block, t, support, -step * g, first)
        m = largest(a, support.size[0])
        if m > step * bound:
            scale(a, support.size[0], step * bound / m)
    return block.X.shape[0]


@compiled
def drop_at_random(support: Support, uniform: bool, u: float) -> None:
    """Delete term i with probability q_i and divide every other weight by 1 - q_j: the expectation stays."""
    n, a = support.size[0], support.weights
    if n == 1:
        remove(support, 0)
        return
    if uniform:
        remove(support, int(u * n))
        scale(a, n - 1, n / (n - 1.0))
        return
    total = 0.0
    for j in range(n):
        total += abs(a[j]) * math.sqrt(support.diagonal[j])
    chosen, reached = n - 1, 0.0
    for j in range(n):
        share = abs(a[j]) * math.sqrt(support.diagonal[j]) / total if total > 0.0 else 1.0 / n
        q = (1.0 - share) / (n - 1)
        if reached <= u < reached + q:
            chosen = j
        reached += q
        if q < 1.0:  # else it is the one to go
            a[j] /= 1.0 - q
    remove(support, chosen)


@fast
def largest(a: Floats, n: int) -> float:
    """The largest absolute value among the first n."""
    m = 0.0
    for j in range(n):
        m = max(m, abs(a[j]))
    return m


@fast
def coordinates(root: Floats, k: Floats, n: int, v: Floats, d: Floats) -> float:
    """v = root k and d = K^-1 k = root^T v for the lower triangular root^T root = K^-1; returns |v|^2 = k.d."""
    total = 0.0
    for j in range(n):
        d[j] = 0.0
    for i in range(n):
        s = 0.0
        for j in range(i + 1):
            s += root[i, j] * k[j]
        v[i] = s
        total += s * s
        for j in range(i + 1):
            d[j] += root[i, j] * s
    return total


@compiled
def projectron(
    block: Block,
    support: Support,
    first: int,
    budget: int,
    room: int,
    start: int,
    threshold: float,
    margin: bool,
    root: Floats,
    p: Floats,
) -> int:
    """Projectron, and with `margin` Projectron++ (Orabona, Keshet and Caputo 2009).

    `threshold` is the distance eta in the kernel's own space; `root (cap, cap)` is lower triangular, with root^T root
    the inverse of the terms' kernel matrix. A mistake costs O(B^2).
    """
    cap = support.weights.shape[0]
    k, v, d = np.empty(cap), np.empty(cap), np.empty(cap)
    for t in range(start, block.X.shape[0]):
        if support.size[0] >= room:
            return t
        kernel_row(block, t, support, k)
        n, y, kt = support.size[0], block.y[t], block.diagonal[t]
        p[t] = inner(k, support.weights, n)
        score = y * p[t]
        if score >= 1.0 or (score > 0.0 and not margin):
            continue
        inside = coordinates(root, k, n, v, d)
        outside = max(kt - inside, 0.0)
        # Below a relative 1e-10 the squared distance is rounding, and its inverse would spoil the root.
        near = outside <= max(threshold * threshold, 1e-10 * kt)
        if score > 0.0:
            step = margin_step(1.0 - score, math.sqrt(outside), inside, threshold)
            axpy(support.weights, y * step, d, n)
        elif near or n == budget > 0:
            axpy(support.weights, y, d, n)
        else:
            distance = math.sqrt(outside)
            for j in range(n):
                root[n, j] = -d[j] / distance
            root[n, n] = 1.0 / distance
            append(block, t, support, y, first)
    return block.X.shape[0]


@compiled
def margin_step(loss: float, distance: float, inside: float, threshold: float) -> float:
    """Projectron++'s step at a margin error of size `loss`; zero where the point is too far from the terms."""
    if inside <= 0.0:
        return 0.0
    if threshold <= 0.0:
        # The limit: points in the span take the whole step, the others none.
        return min(loss / inside, 1.0) if distance == 0.0 else 0.0
    gain = loss - distance / threshold
    return max(0.0, min(loss / inside, 2.0 * gain / inside, 1.0))


@fast
def axpy(a: Floats, factor: float, d: Floats, n: int) -> None:
    """Add factor times d to the first n places of a."""
    for j in range(n):
        a[j] += factor * d[j]
