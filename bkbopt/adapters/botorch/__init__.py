"""BKB as a BoTorch model: `BKBModel` replaces `SingleTaskGP`.

Example:
    >>> import torch
    >>> from bkbopt.adapters.botorch import BKBModel, fit_bkb_model
    >>> X = torch.linspace(0.0, 1.0, 40, dtype=torch.float64)[:, None]
    >>> model = fit_bkb_model(BKBModel(X, torch.sin(6.0 * X), max_inducing=20))
    >>> posterior = model.posterior(torch.tensor([[0.25], [3.0]], dtype=torch.float64))
    >>> posterior.variance[0] < 0.01 < posterior.variance[1]
    tensor([True])
    >>> len(model.inducing_points) <= 20
    True
"""

from bkbopt.errors import extra

with extra("botorch"):
    from bkbopt.adapters.botorch import paths as _paths  # noqa: F401  registers the sampler of paths with BoTorch
    from bkbopt.adapters.botorch.fit import fit_bkb_model
    from bkbopt.adapters.botorch.mll import BKBMarginalLogLikelihood
    from bkbopt.adapters.botorch.model import BKBModel

__all__ = ["BKBMarginalLogLikelihood", "BKBModel", "fit_bkb_model"]
