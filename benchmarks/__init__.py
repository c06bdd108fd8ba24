"""Benchmarks: programs, which `python -m benchmarks --help` lists, and what they share.

| modules                                            | subject                                                   |
| -------------------------------------------------- | --------------------------------------------------------- |
| functions, structured_functions                    | noisy test functions of a box                             |
| choice_tasks, tuning, pipelines; tasks             | choices alone, models to tune; all of these for Optuna    |
| batch_problems, outcomes                           | problems of batches; of several objectives or constraints |
| algorithm1                                         | the paper's Algorithm 1 as printed, for pools             |
| samplers, ask_tell_samplers, turbo                 | samplers of Optuna: ours, its own, HEBO, SMAC3, TuRBO     |
| peers, batch_peers, outcome_peers, outcome_botorch | optimisers by ask and tell, for each kind of problem      |
| botorch_model                                      | the Gaussian process of the peers that BoTorch makes      |
| comparison, in_turns                               | runs kept as files; another checkout beside this one      |
| arguments, report                                  | command lines; tables, clocks, memory, conditions         |
"""
