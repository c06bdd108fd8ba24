"""Sample paths of a `BKBModel`, whose cost depends on the inducing points only; registered with BoTorch.

| symbol | shape       | units   | meaning                                                   |
| ------ | ----------- | ------- | --------------------------------------------------------- |
| S      | (..., m, d) | model's | inducing points                                           |
| g      | (..., m)    | y       | a path of the prior at the inducing points minus its mean |
| u      | (..., r)    | -       | a sample of the features' weights minus their mean        |

    f(x) = g(x) + k_S(x) . (a + W (u - W^T g(S)))

The part of the path outside the features, g(x) - k_S(x) . W W^T g(S), has the covariance k(x, x') - z(x) . z(x') with
z(x) = W^T k_S(x), which is the residual covariance. So paths have exactly BKB's mean and covariance if the path of the
prior is exact (Wilson et al. 2020, with the inducing points as the data). a, W and the root of the covariance of u are
those of `Prediction`.
"""

import copy
from typing import Any

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.sampling.pathwise.features.maps import KernelEvaluationMap
from botorch.sampling.pathwise.paths import GeneralizedLinearPath
from botorch.sampling.pathwise.posterior_samplers import DrawMatheronPaths, MatheronPath
from botorch.sampling.pathwise.prior_samplers import draw_kernel_feature_paths
from botorch.sampling.pathwise.update_strategies import gaussian_update
from botorch.sampling.pathwise.utils import get_input_transform, get_output_transform
from botorch.utils.context_managers import delattr_ctx
from torch import Size, Tensor

from bkbopt.adapters.botorch.model import BKBModel

__all__: list[str] = []


def _draw_paths(
    model: BKBModel,
    *,
    sample_shape: Size,
    prior_sampler: Any = draw_kernel_feature_paths,
    update_strategy: Any = gaussian_update,
) -> MatheronPath:
    if update_strategy is not gaussian_update:
        raise UnsupportedError("update_strategy: expected BoTorch's gaussian_update; BKBModel has no other update.")
    model.eval()
    prediction = model.prediction
    if prediction.given is not None:
        model = model.absorbed()
        prediction = model.prediction
    S, W, root = prediction.S, prediction.W, prediction.root
    if model.covar_module.batch_shape != S.shape[:-2]:
        # For a kernel shared by all outputs BoTorch draws a single path, but each output needs its own.
        model = copy.copy(model)
        model._modules = {**model._modules, "covar_module": model.covar_module.expand_batch(S.shape[:-2])}
    with delattr_ctx(model, "outcome_transform"):
        prior = prior_sampler(model=model, sample_shape=sample_shape)
        dtype = model.train_targets.dtype
        points = S.to(dtype)
        g = (prior.forward(points) - model.mean_module(points)).double()
        noise = torch.randn(*g.shape[:-1], root.shape[-1], dtype=root.dtype, device=root.device)
        change = root.mT @ noise[..., None] - W.mT @ g[..., None]
        weight: Tensor = prediction.a + (W @ change)[..., 0]
    update = GeneralizedLinearPath(
        feature_map=KernelEvaluationMap(
            kernel=model.covar_module, points=points, input_transform=get_input_transform(model)
        ),
        weight=weight.to(dtype),
    )
    return MatheronPath(prior_paths=prior, update_paths=update, output_transform=get_output_transform(model))


DrawMatheronPaths.add((BKBModel,), _draw_paths)
