"""Faults of the BoTorch model."""

from benchmarks.mutants.fault import Fault

__all__ = ["BOTORCH"]

MODEL = ("adapters/botorch/test_model.py",)
CONDITIONING = ("adapters/botorch/test_conditioning.py",)
COVARIANCE = ("adapters/botorch/test_covariance.py",)
LEARNT_NOISE = ("adapters/botorch/test_learnt_noise.py",)

BOTORCH = (
    Fault(
        "noise variances weigh the wrong way",
        "adapters/botorch/prediction.py",
        "observations.add(X, R, lam * rate)",
        "observations.add(X, R, noise / noise.mean())",
        MODEL,
    ),
    Fault(
        "the prior mean is forgotten",
        "adapters/botorch/model.py",
        "return MultivariateNormal(mean + self.mean_module(X), covariance)",
        "return MultivariateNormal(mean, covariance)",
        MODEL,
    ),
    Fault(
        "a prediction outlives its hyper-parameters",
        "adapters/botorch/model.py",
        "if known is None or not torch.equal(known.theta, theta):",
        "if known is None:",
        ("adapters/botorch/test_states.py", "adapters/botorch/test_model.py"),
    ),
    Fault(
        "points that are not finite have a posterior",
        "adapters/botorch/model.py",
        "else self._dim)\n        m = self._num_outputs\n        indices = None if",
        "else self._dim) if 0 else 0\n        m = self._num_outputs\n        indices = None if",
        ("adapters/botorch/test_bad_input.py",),
    ),
    Fault(
        "an output that is not there wraps around",
        "adapters/botorch/model.py",
        "all(-m <= i < m for i in indices)",
        "all(-m <= i <= m for i in indices)",
        ("adapters/botorch/test_bad_input.py",),
    ),
    Fault(
        "fantasies are added to the prior mean twice",
        "adapters/botorch/model.py",
        "conditioned(X, targets - self.mean_module(X), noise",
        "conditioned(X, targets, noise",
        CONDITIONING,
    ),
    Fault(
        "points conditioned on have no learnt noise",
        "adapters/botorch/model.py",
        "noise = noise if learnt is None else noise + learnt",
        "noise = noise",
        LEARNT_NOISE,
    ),
    Fault(
        "fantasies have the learnt noise twice",
        "adapters/botorch/model.py",
        "if observation_noise is None and self._learnt_noise is not None:",
        "if False:",
        LEARNT_NOISE,
    ),
    Fault(
        "conditioning forgets the noise",
        "adapters/botorch/prediction.py",
        "covariance.to_dense() + torch.diag_embed(noise)",
        "covariance.to_dense() + torch.diag_embed(0.5 * noise)",
        CONDITIONING,
    ),
    Fault(
        "the second conditioning forgets the first",
        "adapters/botorch/prediction.py",
        "if self.given is not None:\n            X, R = joined(",
        "if False:\n            X, R = joined(",
        CONDITIONING,
    ),
    Fault(
        "a variance forgets what was conditioned on",
        "adapters/botorch/covariance.py",
        "variance - self.A.square().sum(-1)",
        "variance",
        (*CONDITIONING, *COVARIANCE),
    ),
    Fault(
        "a few rows forget what was conditioned on",
        "adapters/botorch/covariance.py",
        "self.kernel(x, y) - explained - a @ A.mT",
        "self.kernel(x, y) - explained",
        COVARIANCE,
    ),
    Fault(
        "a part of a batch keeps the whole kernel",
        "adapters/botorch/covariance.py",
        "parameter.data = parameter.data[own]",
        "pass",
        COVARIANCE,
    ),
    Fault(
        "outputs change places in a joint distribution",
        "adapters/botorch/outcomes.py",
        "covariance, interleaved=False)",
        "covariance, interleaved=True)",
        MODEL,
    ),
    Fault(
        "a subset's likelihood is divided by all points",
        "adapters/botorch/mll.py",
        "/ R.shape[-1]\n\n    def _rows",
        "/ n\n\n    def _rows",
        ("adapters/botorch/test_fit.py",),
    ),
    Fault(
        "a likelihood falls where it rises",
        "adapters/botorch/mll.py",
        "-g[..., None] * a\n",
        "g[..., None] * a\n",
        ("adapters/botorch/test_fit.py",),
    ),
    Fault(
        "a likelihood of the user's is replaced by the usual one",
        "adapters/botorch/fit.py",
        "if type(mll) is ExactMarginalLogLikelihood:",
        "if not isinstance(mll, BKBMarginalLogLikelihood):",
        ("adapters/botorch/test_own_likelihoods.py",),
    ),
    Fault(
        "copies share what is in no graph",
        "adapters/botorch/training_data.py",
        "for tensor in self._data() if not tensor.is_leaf",
        "for tensor in self._data()",
        ("adapters/botorch/test_states.py",),
    ),
    Fault(
        "a path's correction leaves the prior in",
        "adapters/botorch/paths.py",
        "root.mT @ noise[..., None] - W.mT @ g[..., None]",
        "root.mT @ noise[..., None]",
        ("adapters/botorch/test_paths.py",),
    ),
)
