"""A coating, mixed by a robot in plates of 24 wells: two objectives, limits that change, results as tables of text.

Four components make up at most the whole, the rest is solvent; the coating is cured at some temperature. A plate goes
to the robot as a CSV file with four decimals, and comes back as another one, with the strength of each well and its
known noise, the viscosity, and the gloss. Some wells gel, and have no strength. The cost is computed. After half of
the plates the limit of the viscosity is lowered, and the gloss, which was kept as an attribute so far, gets one.

The robot is simulated, so that the recommended mixtures can be compared with the truth.

    python examples/plates.py [--plates 6] [--seed 0] [--out out] [--smoke]
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import bkbopt as bo
from bkbopt import plots

SPACE = {
    "resin": (0.0, 0.7),
    "hardener": (0.0, 0.4),
    "filler": (0.0, 0.4),
    "oil": (0.0, 0.3),
    "temperature": (20.0, 90.0),
}
RULES = ["resin + hardener + filler + oil <= 0.9", "resin + hardener >= 0.2"]
PRICES = {"resin": 4.0, "hardener": 9.0, "filler": 1.0, "oil": 6.0}
WELLS = 24
#: Standard deviation of the measured strength, by the robot's calibration.
NOISE = 0.15

Params = Mapping[str, Any]


def truth(p: Params) -> dict[str, float]:
    """What the mixture has without noise."""
    ratio = p["hardener"] / max(p["resin"], 1e-9)
    cured = np.exp(-(((ratio - 0.45) / 0.2) ** 2)) * np.exp(-(((p["temperature"] - 65.0) / 30.0) ** 2))
    return {
        "strength": 10.0 * cured * (p["resin"] + p["hardener"]) * (1.0 + p["filler"]) - 6.0 * p["oil"],
        "cost": sum(price * p[name] for name, price in PRICES.items()),
        "viscosity": 60.0 * (p["resin"] + 1.5 * p["filler"]) ** 1.5 * np.exp(-(p["temperature"] - 20.0) / 60.0),
        "gloss": 0.9 - 1.5 * p["filler"] + 0.8 * p["oil"],
    }


def gels(p: Params) -> bool:
    """Whether the mixture cures in the well."""
    return bool(p["hardener"] > 0.3 and p["temperature"] > 70.0)


def robot(plate: Path, seed: int) -> pd.DataFrame:
    """The table of a plate with what was measured; empty where a well has gelled."""
    rng, table = np.random.default_rng(seed), pd.read_csv(plate)
    rows = []
    for p in table.to_dict("records"):
        found = truth(p)
        strength = np.nan if gels(p) else found["strength"] + NOISE * rng.standard_normal()
        noisy = {name: found[name] * (1.0 + 0.02 * rng.standard_normal()) for name in ("viscosity", "gloss")}
        rows.append({**p, "strength": strength, "sd": NOISE, "cost": found["cost"], **noisy})
    return pd.DataFrame(rows).sample(frac=1.0, random_state=seed)  # in another order


def campaign(opt: bo.Optimizer, n_plates: int, seed: int, out: Path) -> None:
    for number in range(n_plates):
        if number == n_plates // 2:
            opt.set_constraints(["viscosity <= 12", "gloss >= 0.6"])
        trials = opt.ask(WELLS)
        plate = out / "plate.csv"
        pd.DataFrame([dict(trial.params) for trial in trials]).round(4).to_csv(plate, index=False)
        measured = robot(plate, 1_000 * seed + number)
        later = "gloss" not in opt.constraints
        opt.tell(
            measured,
            {"strength": ("strength", "sd"), "cost": "cost"},
            columns=list(SPACE),
            constraints={name: name for name in opt.constraints},
            user_attrs={"gloss": "gloss"} if later else None,
            invalid="fail",
        )
        kept = [trial for trial in opt.trials if trial.values and trial.is_feasible]
        limits = ", ".join(opt.options["constraints"])
        print(f"plate {number + 1}: {len(kept)} of {len(opt.trials)} wells are within the limits {limits}")


def report(opt: bo.Optimizer) -> None:
    front = opt.recommend_front()
    print(f"\n{len(front)} recommended mixtures, some of them with their true values:\n")
    print("strength by the model  true   cost  viscosity  gloss  P(feasible)  mixture")
    for i in np.unique(np.linspace(0, len(front) - 1, 6).round().astype(int)):
        point, true = front[i], truth(front[i].params)
        mixture = ", ".join(f"{name} {value:.3g}" for name, value in point.params.items())
        print(
            f"{point.means[0]:12.2f} ± {point.stds[0]:<5.2f} {true['strength']:6.2f} {true['cost']:6.2f} "
            f"{true['viscosity']:10.1f} {true['gloss']:6.2f} {point.feasibility:12.2f}  {mixture}"
        )
    good = [p for p in front if truth(p.params)["viscosity"] <= 12.0 and truth(p.params)["gloss"] >= 0.6]
    print(f"\n{len(good)} of {len(front)} are truly within the limits, {sum(gels(p.params) for p in front)} gel")


def draw(opt: bo.Optimizer, out: Path) -> Path:
    """The front, and the model of the viscosity."""
    figure = Figure(figsize=(12.0, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    plots.pareto(opt, ax=left, value_names=("strength", "cost"))
    plots.posterior_contour(opt.single_objective("viscosity"), "resin", "filler", ax=right, value_name="viscosity")
    figure.savefig(path := out / "plates.png", dpi=130)
    return path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A coating, mixed by a robot in plates of 24 wells.")
    parser.add_argument("--plates", type=int, help="number of plates (default 6)")
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default 0)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of tables and the picture (default out)")
    parser.add_argument("--smoke", action="store_true", help="a run of seconds that shows only that it runs")
    args = parser.parse_args()
    args.plates = args.plates or (2 if args.smoke else 6)
    return args


def main() -> None:
    args = arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    opt = bo.Optimizer(
        SPACE,
        directions={"strength": "maximize", "cost": "minimize"},
        constraints=["viscosity <= 20"],
        feasible=RULES,
        seed=args.seed,
    )
    campaign(opt, args.plates, args.seed, args.out)
    report(opt)
    print(f"picture: {draw(opt, args.out)}")


if __name__ == "__main__":
    main()
