"""Candidates of a box."""

from typing import Any

import bkbopt as bo
from bkbopt.search.candidates.box import BoxCandidates, candidates_of
from bkbopt.search.candidates.listed import GridCandidates
from bkbopt.spaces.encoding import Encoding


def candidates(spec: Any) -> BoxCandidates | GridCandidates:
    parameters = bo.Space.parse(spec).keyed
    return candidates_of(Encoding(tuple(parameters.items())).embedding(parameters, {}), None)
