"""Search of tables of chemistry and materials: bkbopt, BoTorch's SingleTaskGP, a random forest, random rows.

Run it as `python -m benchmarks.lab_tables --data FOLDER`, where FOLDER has `dataset_NAME/config.json` and `data.csv` of
Olympus (Häse et al. 2021; its repository has them in `src/olympus/datasets`), measured or computed. Each is a pool, in
another random order for each seed, of which one row at a time is evaluated, none twice; several values of one row are
averaged, of several measurements the first is taken. All begin with ten rows, ours of its start-up design, the others
random.

- buchwald_a, suzuki_edbo (3,696 couplings), dye_lasers (3,458), redoxmers, mmli_opv (2,200), lnp3: two to five choices;
- hplc, crossed_barrel, oer_plate_3496, oer_plate_3860, photo_wf3, photo_pce10: four to six numbers, some of mixtures.

SingleTaskGP has its defaults and LogEI, over all rows, choices as columns of zeros and ones; the forest is
scikit-learn's, 100 trees, and takes the row with the largest mean plus standard deviation of the trees.

- regret: what the best row found lacks to the best one of the table, over the difference of that to the median row;
  a mean over seeds.
- best 1 %: the share of runs that have found one of the best hundredth of the rows.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bkbopt as bo
from benchmarks.arguments import Arguments
from benchmarks.botorch_model import fitted, quiet_botorch
from benchmarks.report import Clock, measuring, print_table

__all__ = ["SEARCHES", "TABLES", "Table", "main"]

TABLES = (
    *("buchwald_a", "suzuki_edbo", "dye_lasers", "redoxmers", "mmli_opv", "lnp3"),
    *("hplc", "crossed_barrel", "oer_plate_3496", "oer_plate_3860", "photo_wf3", "photo_pce10"),
)
N_STARTUP = 10

Array = np.ndarray


@dataclass(frozen=True)
class Table:
    """Columns `X` of the rows, texts for choices, and values `y (n,)`, to be maximised."""

    name: str
    X: pd.DataFrame
    y: Array

    @classmethod
    def read(cls, folder: Path, name: str) -> "Table":
        """A table, one row for each point."""
        place = folder / f"dataset_{name}"
        config = json.loads((place / "config.json").read_text())
        columns, goal = config["parameters"], config["default_goal"]
        names = [column["name"] for column in columns]
        kinds = {c["name"]: str if c["type"] == "categorical" else float for c in columns}
        frame = pd.read_csv(place / "data.csv", header=None, usecols=range(len(names) + 1))
        frame.columns = pd.Index([*names, "value"])
        frame = frame.astype({**kinds, "value": float}).dropna()
        frame = frame.groupby(names, sort=False, as_index=False)["value"].mean()
        sign = 1.0 if (goal if isinstance(goal, str) else goal[0]) == "maximize" else -1.0
        return cls(name, frame[names], sign * frame["value"].to_numpy())

    def shuffled(self, seed: int) -> "Table":
        """The rows in another order, so that equal scores are not decided by that of the file."""
        order = np.random.default_rng([seed, 1]).permutation(len(self.y))
        return Table(self.name, self.X.iloc[order].reset_index(drop=True), self.y[order])

    def encoded(self) -> Array:
        """Columns in [0, 1], choices as zeros and ones."""
        Z = pd.get_dummies(self.X, dtype=float).to_numpy()
        width = np.ptp(Z, axis=0)
        return np.asarray((Z - Z.min(0)) / np.where(width > 0.0, width, 1.0))

    def regrets(self, rows: Sequence[int]) -> Array:
        """Regret after each evaluation, in units of the distance of the median row."""
        found = np.maximum.accumulate(self.y[list(rows)])
        return np.asarray((self.y.max() - found) / (self.y.max() - np.median(self.y)))


def _ours(table: Table, n: int, seed: int) -> list[int]:
    opt = bo.Optimizer(bo.Pool(table.X), direction="maximize", seed=seed, duplicates="avoid")
    rows = []
    for _ in range(n):
        trial = opt.ask()
        assert trial.index is not None
        opt.tell(trial, float(table.y[trial.index]))
        rows.append(trial.index)
    return rows


def _by_scores(scores: Callable[[Array, Array, Array], Array]) -> "Search":
    """The row with the best score again and again: (columns of evaluated rows, their values, all columns) -> scores."""

    def search(table: Table, n: int, seed: int) -> list[int]:
        Z = table.encoded()
        rows = np.random.default_rng(seed).permutation(len(Z))[:N_STARTUP].tolist()
        while len(rows) < n:
            found = scores(Z[rows], table.y[rows], Z)
            found[rows] = -np.inf
            rows.append(int(found.argmax()))
        return rows

    return search


def _forest(X: Array, y: Array, Z: Array) -> Array:
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(100, random_state=len(y)).fit(X, y)
    trees = np.array([tree.predict(Z) for tree in forest.estimators_])
    return np.asarray(trees.mean(0) + trees.std(0))


def _single_task_gp(X: Array, y: Array, Z: Array) -> Array:
    import torch
    from botorch.acquisition.analytic import LogExpectedImprovement

    corners = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, X.shape[1])
    with quiet_botorch():
        model = fitted(torch.from_numpy(X), torch.from_numpy(y)[:, None], corners)
        with torch.no_grad():
            best = model.posterior(torch.from_numpy(X)).mean.max()
            return np.asarray(LogExpectedImprovement(model, best)(torch.from_numpy(Z)[:, None]))


def _random(table: Table, n: int, seed: int) -> list[int]:
    return np.random.default_rng(seed).permutation(len(table.y))[:n].tolist()


#: From a table, a number of evaluations and a seed to the rows that are evaluated, in their order.
Search = Callable[[Table, int, int], list[int]]
SEARCHES: dict[str, Search] = {
    "bkbopt": _ours,
    "SingleTaskGP": _by_scores(_single_task_gp),
    "forest": _by_scores(_forest),
    "random": _random,
}


def _measured(table: Table, search: Search, n: int, seeds: int) -> tuple[Array, float, float]:
    """Regrets at half and all evaluations, the share of runs with one of the best rows, seconds a run."""
    regrets, hits, clock = [], [], Clock()
    for seed in range(seeds):
        pool = table.shuffled(seed)
        with clock:
            rows = search(pool, min(n, len(pool.y)), seed)
        regrets.append(pool.regrets(rows)[[len(rows) // 2 - 1, -1]])
        wanted = np.sort(pool.y)[-max(len(pool.y) // 100, 1)]
        hits.append(float(pool.y[rows].max() >= wanted))
    return np.mean(regrets, axis=0), float(np.mean(hits)), clock.cpu / seeds


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables of regrets and shares."""
    parser = Arguments(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with dataset_NAME for each table")
    parser.option("--tables", TABLES, quick=("hplc",), choices=TABLES, help="which tables")
    parser.option("--searches", tuple(SEARCHES), choices=tuple(SEARCHES), help="which searches")
    parser.option("--trials", 50, quick=20, help="evaluations")
    parser.option("--seeds", 10, quick=1, help="runs")
    options: Any = parser.parse_args(arguments)
    n, seeds = options.trials, options.seeds
    with measuring(1):
        rows, sums = list[tuple[str, ...]](), {search: list[tuple[float, ...]]() for search in options.searches}
        for name in options.tables:
            table = Table.read(options.data, name)
            cells = []
            for search in options.searches:
                (half, all_of_them), hits, seconds = _measured(table, SEARCHES[search], n, seeds)
                sums[search].append((half, all_of_them, hits, seconds))
                cells.append(f"{half:.3f} / {all_of_them:.3f}")
            rows.append((name, f"{len(table.y):,} x {table.X.shape[1]}", *cells))
        means = {search: np.mean(values, axis=0) for search, values in sums.items()}
        rows.append(("mean", "", *(f"{half:.3f} / {end:.3f}" for half, end, _, _ in means.values())))
        print_table(f"Regret after {n // 2} / {n} evaluations", ("", "rows", *options.searches), rows)
        print_table(
            "Over all tables",
            ("", "best 1 %", "s a run"),
            [(search, f"{100 * hits:.0f} %", seconds) for search, (_, _, hits, seconds) in means.items()],
        )


if __name__ == "__main__":
    main()
