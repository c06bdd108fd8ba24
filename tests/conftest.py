"""Settings that all tests share."""

import torch
from hypothesis import settings

# The first call of a torch operation pays for its lazy start, which a deadline would blame on one unlucky example.
settings.register_profile("bkbopt", deadline=None)
settings.load_profile("bkbopt")

# The matrices of the tests are small, and several test processes may share the cores.
torch.set_num_threads(1)
