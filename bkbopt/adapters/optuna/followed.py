"""A designer that follows the trials of an Optuna study, and the study's latest distributions."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from bkbopt.adapters.optuna.columns import evaluation_of, external, held, key_of
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.search.designer import Designer
from bkbopt.search.options import Options
from bkbopt.search.startup import slack_of
from bkbopt.search.trials.evaluations import Evaluation, Point, Problem
from bkbopt.spaces.points import with_values
from bkbopt.spaces.space import Space

__all__ = ["FollowedStudy"]


class FollowedStudy:
    """A designer that is updated with the trials of a study.

    Args:
        study: the study.
        options: options of the designer.
        seed: seed of its models.

    Attributes:
        designer: the designer, which computes suggestions.
    """

    def __init__(self, study: Study, options: Options, seed: int) -> None:
        self._storage, self._study_id = study._storage, study._study_id
        self._begun: datetime | None = None  # the first trial
        signs = tuple(1.0 if direction == StudyDirection.MAXIMIZE else -1.0 for direction in study.directions)
        self.designer = Designer(Problem(signs), options, seed)
        self._finished: set[int] = set()
        #: Number of trials at the last update, and the numbers of those that were waiting or running.
        self._seen: tuple[int, set[int]] = 0, set()
        #: The running trials that the designer knows; another object takes the place of one that changes.
        self._running: dict[int, FrozenTrial] = {}
        #: The latest distribution of each column: order of its trial, name of the parameter, distribution.
        self._latest: dict[str, tuple[tuple[float, int], str, BaseDistribution]] = {}

    def belongs_to(self, study: Study, trials: Sequence[FrozenTrial]) -> bool:
        """Whether this object follows the study, with all its `trials`; SQLite may give its id to another one later."""
        same = study._storage is self._storage and study._study_id == self._study_id
        return same and len(trials) >= self._seen[0] and self._begun in (None, _beginning(trials))

    def update(self, trials: Sequence[FrozenTrial]) -> list[Evaluation]:
        """Update the designer with trials that are new, running or newly finished; returns the last ones.

        Storages list trials by number, without gaps. Only those are looked at that were waiting or running at the last
        update, and those after them. If a storage lists them in another way, all are looked at, each time.

        Args:
            trials: all trials of the study.
        """
        n, still_open = self._seen
        fresh = range(max(n - 1, 0), len(trials))
        by_number = len(trials) >= n and all(trials[i].number == i for i in (*still_open, *fresh))
        news, left, running = list[Evaluation](), set[int](), dict[int, FrozenTrial]()
        for trial in [*(trials[i] for i in sorted(still_open)), *trials[n:]] if by_number else trials:
            number, state = trial.number, trial.state
            if number in self._finished:
                continue
            if not state.is_finished():
                left.add(number)
                if state == TrialState.WAITING or self._running.get(number) is trial:
                    continue
                running[number] = trial
            news.append(evaluation_of(trial))
            if state in (TrialState.COMPLETE, TrialState.PRUNED):
                self._note(trial, news[-1].order)
        self.designer.update(news)
        self._seen = (len(trials), left) if by_number else (0, set())
        self._running.update(running)
        finished = [evaluation for evaluation in news if evaluation.number not in running]
        for evaluation in finished:
            self._running.pop(evaluation.number, None)
        self._begun = self._begun or _beginning(trials)
        self._finished.update(evaluation.number for evaluation in finished)
        return finished

    def _note(self, trial: FrozenTrial, order: tuple[float, int]) -> None:
        for name, distribution in trial.distributions.items():
            key = key_of(name, distribution)
            if key not in self._latest or order > self._latest[key][0]:
                self._latest[key] = (order, name, distribution)

    def latest_distributions(self) -> dict[str, BaseDistribution]:
        """The latest distributions of finished trials, by name."""
        # A name has several columns if trials of other studies were added; the column that was used last is taken.
        latest = sorted(self._latest.values(), key=lambda used: used[0])
        return {name: distribution for _, name, distribution in latest}

    def fixed(self, params: Mapping[str, Any]) -> Point:
        """Values that are to be held, in internal form by column key.

        Raises:
            ArgumentTypeError: no mapping.
            ArgumentError: a name that finished trials do not have, or a value outside of its latest distribution.
        """
        if not isinstance(params, Mapping):
            raise ArgumentTypeError(f"fixed: expected a dict of parameters, got {type(params).__name__}.")
        latest = self.latest_distributions()
        for name, value in params.items():
            if name not in latest:
                raise ArgumentError(f"fixed: expected names among {sorted(latest)}, got {name!r}.")
            if not held({name: value}, latest):
                raise ArgumentError(f"fixed: expected for {name!r} a value of {latest[name]!r}, got {value!r}.")
        return held(params, latest)

    def running_points(self, number: int) -> list[Point]:
        """Points of the running trials except trial `number`."""
        return [e.point for n, e in sorted(self.designer.history.running.items()) if n != number]

    def meets(self, point: Point, space: Space, number: int, trials: Sequence[FrozenTrial]) -> bool:
        """Whether another worker has proposed the same point meanwhile; its trial, perhaps finished, is known then.

        Args:
            point: the point.
            space: the space that it was chosen from.
            number: the number of its trial.
            trials: all trials, with those that other workers have started meanwhile.
        """
        known = [dict(other) for other in self.running_points(number)]
        finished = self.update(trials)
        others = self.running_points(number) + [e.point for e in finished]
        return any(dict(other) not in known for other in with_values(point, others, slack_of(space)))

    def params(self, point: Point, index: int | None) -> dict[str, Any]:
        """The parameters of a point by name; the signature is that of the optimizer's `Conversion`."""
        latest = ((value, *self._latest[key]) for key, value in point.items())
        return {name: external(distribution, value) for value, _, name, distribution in latest}


def _beginning(trials: Sequence[FrozenTrial]) -> datetime | None:
    return next((trial.datetime_start for trial in trials if trial.number == 0), None)
