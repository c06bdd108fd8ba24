"""Faults of the pictures: of their content, not of their style."""

from benchmarks.mutants.fault import Fault

__all__ = ["PLOTS"]

PLOTS = (
    Fault(
        "legends are placed for small text",
        "plots/style.py",
        'text_size("xtick.labelsize") + text_size("axes.labelsize")',
        "20.0",
        ("plots/test_all.py",),
    ),
    Fault(
        "values are black on a black background",
        "plots/posterior.py",
        "colour=ink(), linewidth=0.0",
        'colour="black", linewidth=0.0',
        ("plots/test_all.py",),
    ),
    Fault(
        "what is probably feasible is hatched",
        "plots/feasible.py",
        "contiguous_regions(found.low)",
        "contiguous_regions(~found.low)",
        ("plots/test_posterior.py",),
    ),
    Fault(
        "where trials fail is not hatched",
        "plots/feasible.py",
        "return Odds(success, FAILING)",
        "return Odds(np.ones_like(success), FAILING)",
        ("plots/test_posterior.py",),
    ),
    Fault(
        "hatched cells are one too high",
        "plots/feasible.py",
        "y[start], y[stop]",
        "y[start + 1], y[stop]",
        ("plots/test_posterior.py",),
    ),
    Fault(
        "a recommended front needs a single objective",
        "plots/report.py",
        "if is_modelled(run.opt):\n        words",
        "if run.has_model:\n        words",
        ("plots/test_report.py",),
    ),
    Fault(
        "text of a log becomes markup in a report",
        "plots/page/__init__.py",
        "return html.escape(str(value).translate(FORBIDDEN))",
        "return str(value).translate(FORBIDDEN)",
        ("plots/test_page.py",),
    ),
    Fault(
        "failed runs end a curve",
        "plots/runs.py",
        "sign * np.fmax.accumulate(sign * y)",
        "sign * np.maximum.accumulate(sign * y)",
        ("plots/test_runs.py",),
    ),
)
