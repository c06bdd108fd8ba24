"""Error and size of a random forest: the settings among which a practitioner chooses, from noisy evaluations.

One evaluation draws a fresh split of the handwritten digits, grows a forest on a part, and returns its error on the
rest and its size, the number of its nodes. No setting is best in both. The observed front is biased, since it holds the
lucky splits; the recommended front is that of the posterior means. Both are measured again at the end, on the same
fresh splits.

    python examples/two_objectives.py [--trials 80] [--seed 0] [--out out] [--smoke]
"""

import argparse
import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import bkbopt as bo
from bkbopt import plots

SPACE = bo.Space.parse(
    {
        "n_estimators": bo.Int(1, 60, log=True),
        "max_depth": bo.Int(2, 12),
        "max_features": bo.Float(0.03, 1.0, log=True),
        "min_samples_leaf": bo.Int(1, 20, log=True),
    }
)
#: Error in percent, and size: decimal logarithm of the number of nodes.
DIRECTIONS = {"error": "minimize", "size": "minimize"}
#: A point that is worse than all settings of interest, for the hypervolume.
REFERENCE = {"error": 60.0, "size": 4.5}
N_TRAIN, N_TEST, N_AGAIN = 400, 400, 20

Params = Mapping[str, Any]


@functools.cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Images of 8 x 8 pixels as rows, and their digits."""
    return load_digits(return_X_y=True)


def measured(params: Params, split: int) -> dict[str, float]:
    """Error and size on the split with this number, and the depth that was reached, which is no objective."""
    X, y = digits()
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, train_size=N_TRAIN, test_size=N_TEST, stratify=y, random_state=split
    )
    forest = RandomForestClassifier(**params, random_state=split).fit(X_train, y_train)
    trees = [estimator.tree_ for estimator in forest.estimators_]
    return {
        "error": 100.0 * float(np.mean(forest.predict(X_test) != y_test)),
        "size": math.log10(sum(tree.node_count for tree in trees)),
        "depth": float(max(tree.max_depth for tree in trees)),
    }


def again(points: Sequence[Params], n: int) -> np.ndarray:
    """Error and size of each point, averaged over `n` fresh splits, (points, 2)."""
    values = [[measured(params, 10_000 + split) for split in range(n)] for params in points]
    return np.array([np.mean([[value[name] for name in DIRECTIONS] for value in each], axis=0) for each in values])


def draw(opt: bo.Optimizer, out: Path) -> Path:
    """The front, and the model of the error alone."""
    figure = Figure(figsize=(12.0, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    labels = ("error (%)", "size (decimal logarithm of the nodes)")
    plots.pareto(opt, ax=left, value_names=labels)
    error = opt.single_objective("error")
    first, second = sorted(shares := bo.analysis.variance_shares(error), key=lambda name: -shares[name].total)[:2]
    plots.posterior_contour(error, first, second, ax=right, at={}, value_name=labels[0])
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(path := out / "two_objectives.png", dpi=130)
    return path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Error and size of a random forest on handwritten digits.")
    parser.add_argument("--trials", type=int, help="evaluations (default 80)")
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default 0)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture (default out)")
    parser.add_argument("--smoke", action="store_true", help="a run of seconds that shows only that it runs")
    args = parser.parse_args()
    args.trials = args.trials or (14 if args.smoke else 80)
    return args


def report(opt: bo.Optimizer, n: int) -> None:
    """Some of the recommended settings, and both fronts, beside their means over `n` fresh splits."""
    front, observed = opt.recommend_front(), opt.best_trials
    true = again([point.params for point in front], n)
    print(f"\n{len(front)} recommended settings, some of them measured again on {n} fresh splits:\n")
    print("error by the model    measured again    nodes    setting")
    for i in np.unique(np.linspace(0, len(front) - 1, 6).round().astype(int)):
        point, (error, size) = front[i], true[i]
        setting = ", ".join(f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in point.params.items())
        print(f"{point.means[0]:9.1f} ± {point.stds[0]:<6.1f} {error:15.1f} % {10**size:8.0f}    {setting}")
    lucky = np.mean(again([t.params for t in observed], n)[:, 0]) - np.mean([t.values[0] for t in observed])
    fair = np.mean(true[:, 0]) - np.mean([point.means[0] for point in front])
    print("\nHow much larger errors are on fresh splits, on average, in percentage points:")
    print(f"{lucky:.1f} for the observed front, {fair:.1f} for the recommended one")


def main() -> None:
    args = arguments()
    splits = itertools.count(1_000 * args.seed)
    opt = bo.minimize(
        lambda params: measured(params, next(splits)),
        SPACE,
        args.trials,
        directions=DIRECTIONS,
        seed=args.seed,
        show_progress_bar=True,
    )
    report(opt, 2 if args.smoke else N_AGAIN)
    print(f"hypervolume of the observed front: {opt.hypervolume(REFERENCE):.1f}")
    print(f"picture: {draw(opt, args.out)}")


if __name__ == "__main__":
    main()
