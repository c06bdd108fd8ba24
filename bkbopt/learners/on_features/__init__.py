"""Steps on explicit features of the kernel: FOGD, NOGD, SkeGD, FORKS."""
