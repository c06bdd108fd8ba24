"""Time of a call of our default kernel and of GPyTorch's, with and without gradients.

Run it as `python -m benchmarks.kernel_overhead`.
"""

import statistics
import time
from collections.abc import Callable, Sequence

import gpytorch
import torch
from torch import Tensor

from benchmarks.arguments import Arguments
from benchmarks.report import measuring, print_table
from bkbopt.kernels import ARDKernel, matern52

__all__ = ["SIZES", "main", "pair_of_kernels"]

D = 6
SIZES = ((8, 60), (1_500, 200))


def pair_of_kernels() -> tuple[ARDKernel, gpytorch.kernels.Kernel]:
    """Our ARD Matern-5/2 kernel and GPyTorch's with the same lengthscales and outputscale."""
    lengthscale = torch.linspace(0.3, 1.2, D, dtype=torch.float64)
    theirs = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=D)).double()
    theirs.base_kernel.lengthscale = lengthscale
    theirs.outputscale = torch.tensor(1.3, dtype=torch.float64)
    return matern52(D, lengthscale.tolist(), 1.3), theirs.eval()


def _call(kernel: Callable[[Tensor, Tensor], Tensor], X: Tensor, S: Tensor, gradient: bool) -> Callable[[], object]:
    """A call of the kernel; with `gradient` also the derivative of the sum with respect to X."""
    if not gradient:
        return lambda: kernel(X, S)

    def run() -> object:
        free = X.clone().requires_grad_()
        return torch.autograd.grad(kernel(free, S).sum(), free)

    return run


def _interleaved_ms(calls: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Median milliseconds of each call, in turns, so that the load of the machine affects all."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for call, own in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            own.append(time.perf_counter() - start)
    return [1e3 * statistics.median(own[len(own) // 5 :]) for own in times]


def main(arguments: Sequence[str] | None = None) -> None:
    """Time both kernels side by side and print the table."""
    parser = Arguments(__doc__)
    parser.option("--repeats", 200, quick=50, help="calls of each")
    parser.option("--threads", 1, help="of torch and BLAS")
    options = parser.parse_args(arguments)
    ours, theirs = pair_of_kernels()
    generator = torch.Generator().manual_seed(0)
    rows = []
    with measuring(options.threads):
        for n, m in SIZES:
            X, S = (torch.rand(k, D, dtype=torch.float64, generator=generator) for k in (n, m))
            for gradient in (False, True):
                calls = [_call(k, X, S, gradient) for k in (ours, lambda A, B: theirs(A, B).to_dense())]
                with torch.set_grad_enabled(gradient):
                    our_ms, their_ms = _interleaved_ms(calls, options.repeats)
                rows.append((f"{n} x {m}", "yes" if gradient else "no", our_ms, their_ms, their_ms / our_ms))
        print_table(
            f"ARD Matern-5/2, d = {D}: a call in ms (medians of {options.repeats})",
            ("size", "gradient", "ours", "GPyTorch", "ratio"),
            rows,
        )


if __name__ == "__main__":
    main()
