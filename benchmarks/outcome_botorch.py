"""BoTorch on problems with several outcomes: noisy expected hypervolume improvement, and constrained improvement.

One batched `SingleTaskGP` with unknown noise models all outcomes, its inputs normalised and its outcomes standardised,
and is refitted after every trial; one point a step. Constraints go through the sign-preserving logarithm of SCBO
(`Bilog`; Eriksson and Poloczek 2021) first, since those of engineering problems span many orders of magnitude.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from benchmarks.botorch_model import fitted, quiet_botorch
from benchmarks.functions import Array
from benchmarks.outcome_peers import Loop
from benchmarks.outcomes import OutcomeProblem
from benchmarks.samplers import N_STARTUP

if TYPE_CHECKING:
    from botorch.acquisition import AcquisitionFunction
    from botorch.models import SingleTaskGP

__all__ = ["BOTORCH"]

#: How probable a named point's feasibility must be where observations are noisy.
SURE = 0.9
#: Local searches for the next point, and random points that compete to begin them, as in BoTorch's tutorials.
RESTARTS, RAW_SAMPLES = 10, 512


class _Data:
    """The observations (larger is better) and their model: X (n, d), Y (n, k) in the units of the model."""

    def __init__(self, problem: OutcomeProblem, seed: int) -> None:
        from botorch.utils.sampling import draw_sobol_samples

        self.problem = problem
        self.corners = torch.tensor(problem.bounds, dtype=torch.float64).T
        self.start = draw_sobol_samples(self.corners, N_STARTUP, q=1, seed=seed)[:, 0]
        self.X = torch.empty(0, problem.dim, dtype=torch.float64)
        self.Y = torch.empty(0, problem.n_objectives + problem.n_constraints, dtype=torch.float64)
        self.model: SingleTaskGP | None = None

    def tell(self, x: Array, outcomes: Array) -> None:
        row = torch.tensor(outcomes)
        row[: self.problem.n_objectives] *= -1
        constraints = row[self.problem.n_objectives :]
        constraints.copy_(constraints.sign() * constraints.abs().log1p())
        self.X = torch.cat([self.X, torch.tensor(x)[None]])
        self.Y = torch.cat([self.Y, row[None]])
        if len(self.X) >= N_STARTUP:
            with quiet_botorch():
                self.model = fitted(self.X, self.Y, self.corners)

    def believed(self) -> tuple[Tensor, Tensor]:
        """Outcomes (n, k) of the points tried and how probable each one's feasibility is (n,).

        By the model where there is noise, and as they were observed where there is none.
        """
        constraints = slice(self.problem.n_objectives, None)
        if self.model is None or not self.problem.noisy:
            return self.Y, (self.Y[:, constraints] <= 0).all(-1).to(self.Y)
        with torch.no_grad(), quiet_botorch():
            posterior = self.model.posterior(self.X)
        z = posterior.mean / posterior.variance.sqrt()
        return posterior.mean, torch.special.ndtr(-z[:, constraints]).prod(-1)


def _qlognehvi(data: _Data, model: "SingleTaskGP", seed: int) -> "AcquisitionFunction":
    """Its reference point is the worst value of each objective so far, since no user knows the true one.

    Inferred from the front instead, it shrinks with the front, and a search that begins at one end never leaves it.
    """
    from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
    from botorch.sampling.normal import SobolQMCNormalSampler

    return qLogNoisyExpectedHypervolumeImprovement(
        model,
        ref_point=data.Y.amin(0),
        X_baseline=data.X,
        sampler=SobolQMCNormalSampler(torch.Size([128]), seed=seed),
        prune_baseline=True,
    )


def _logcei(data: _Data, model: "SingleTaskGP", seed: int) -> "AcquisitionFunction":
    """Over the best point that is more probably feasible than not; where none is, the probability of being feasible."""
    from botorch.acquisition.analytic import LogConstrainedExpectedImprovement, LogProbabilityOfFeasibility

    limits: dict[int, tuple[float | None, float | None]] = dict.fromkeys(range(1, data.Y.shape[-1]), (None, 0.0))
    believed, feasible = data.believed()
    if not (feasible > 0.5).any():
        return LogProbabilityOfFeasibility(model, constraints=limits)
    best = believed[feasible > 0.5, 0].max()
    return LogConstrainedExpectedImprovement(model, best_f=best, objective_index=0, constraints=limits)


def _qlognei(data: _Data, model: "SingleTaskGP", seed: int) -> "AcquisitionFunction":
    from botorch.acquisition.logei import qLogNoisyExpectedImprovement
    from botorch.acquisition.objective import GenericMCObjective
    from botorch.sampling.normal import SobolQMCNormalSampler

    return qLogNoisyExpectedImprovement(
        model,
        X_baseline=data.X,
        sampler=SobolQMCNormalSampler(torch.Size([128]), seed=seed),
        objective=GenericMCObjective(lambda samples, X=None: samples[..., 0]),
        constraints=[lambda samples, i=i: samples[..., i] for i in range(1, data.Y.shape[-1])],
        prune_baseline=True,
    )


def _ask(data: _Data, acquisition: Callable[[_Data, "SingleTaskGP", int], "AcquisitionFunction"], seed: int) -> Array:
    """The next point (d,), where the acquisition is largest."""
    from botorch.optim.optimize import optimize_acqf

    if data.model is None:
        return data.start[len(data.X)].numpy()
    with quiet_botorch():
        candidate, _ = optimize_acqf(
            acquisition(data, data.model, seed + len(data.X)),
            bounds=data.corners,
            q=1,
            num_restarts=RESTARTS,
            raw_samples=RAW_SAMPLES,
            options={"batch_limit": 10, "maxiter": 200},
        )
    return candidate[0].detach().numpy()


def _named(data: _Data) -> Array:
    """The non-dominated points, or the best of those that are feasible; both among those tried, as believed."""
    from botorch.utils.multi_objective.pareto import is_non_dominated

    believed, feasible = data.believed()
    if not data.problem.n_constraints:
        return data.X[is_non_dominated(believed)].numpy()
    allowed = feasible >= min(SURE, float(feasible.max()))
    best = torch.where(allowed, believed[:, 0], -torch.inf).argmax()
    return data.X[best][None].numpy()


def _botorch(
    acquisition: Callable[[_Data, "SingleTaskGP", int], "AcquisitionFunction"],
) -> Callable[[OutcomeProblem, int], Loop]:
    def make(problem: OutcomeProblem, seed: int) -> Loop:
        data = _Data(problem, seed)
        state = torch.Generator().manual_seed(seed).get_state()

        def ask() -> Array:
            nonlocal state
            with torch.random.fork_rng(devices=[]):
                torch.set_rng_state(state)
                x = _ask(data, acquisition, seed)
                state = torch.get_rng_state()
            return np.asarray(x)

        return Loop(ask, data.tell, lambda: _named(data))

    return make


#: A name to a callable (problem, seed) that gives a `Loop`.
BOTORCH: dict[str, Callable[[OutcomeProblem, int], Loop]] = {
    "qlognehvi": _botorch(_qlognehvi),
    "logcei": _botorch(_logcei),
    "qlognei": _botorch(_qlognei),
}
