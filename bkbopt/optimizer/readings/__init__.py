"""The parts of `Optimizer` that are read, one for each subject. Reading changes no later suggestion."""
