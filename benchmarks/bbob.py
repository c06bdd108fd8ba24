"""The 24 functions of BBOB, the test bed by which optimisers of black boxes are compared, from the package `ioh`.

They are functions f1 to f24 on [-5, 5]^d of Hansen, Finck, Ros and Auger, "Real-parameter black-box optimization
benchmarking 2009: noiseless functions definitions" (INRIA RR-6829): separable ones, ill-conditioned ones, ones with
many optima. An instance is a place of the minimum and a rotation. `ioh` (de Nobel et al., "IOHexperimenter", 2024)
knows the minimum of each; it is one of the packages of the extra `bench`.

Noise of a tenth of the interquartile range hides more of some functions than of others: the values of the
ill-conditioned ones (f2, f8 to f12) span six orders of magnitude.
"""

import importlib.util

import numpy as np

from benchmarks.functions import Array, Problem

__all__ = ["DIMENSION", "INSTANCES", "NAMES", "N_FUNCTIONS", "bbob", "is_installed"]

N_FUNCTIONS = 24
DIMENSION = 5
#: Changes are tried on the first instance; the second is run when nothing is to be changed any more.
INSTANCES = (1, 2)
#: Names of the functions of both instances, by instance.
NAMES = {
    instance: tuple(f"bbob{instance}-f{number:02d}" for number in range(1, N_FUNCTIONS + 1)) for instance in INSTANCES
}


def is_installed() -> bool:
    """Whether `ioh` can be imported."""
    return importlib.util.find_spec("ioh") is not None


def bbob(number: int, instance: int, dim: int = DIMENSION) -> Problem:
    """Return the function with this number, 1 to 24, with its only known minimiser.

    Raises:
        ImportError: `ioh` is not installed.
    """
    import ioh

    theirs = ioh.get_problem(number, instance, dim, ioh.ProblemClass.BBOB)

    def function(x: Array) -> Array:
        values = theirs(x.reshape(-1, dim).tolist())
        return np.asarray(values, dtype=np.float64).reshape(x.shape[:-1])

    name, best = NAMES[instance][number - 1], tuple(map(float, theirs.optimum.x))
    return Problem(name, ((-5.0, 5.0),) * dim, float(theirs.optimum.y), (best,), function)
