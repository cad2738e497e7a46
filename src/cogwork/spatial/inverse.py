"""From a pose back to joint positions: damped least squares from several starts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cogwork.spatial.chain import Chain, Joint, Limits
from cogwork.spatial.pose import Pose, Quaternion, Vector, cross

_ATTEMPTS = 60
_STEPS_EACH = 40
_ENOUGH = 4
"""So many ways to reach a pose are compared, if the first is not already near."""
_NEAR = 1.0
_STALLED = 6
_LEAST_REACH_MM = 100.0


def solve(
    chain: Chain,
    target: Pose,
    start: Sequence[float],
    *,
    tolerance_mm: float = 0.01,
    tolerance_rad: float = 1e-4,
) -> list[float] | None:
    """Joint positions within the limits that put the end of the chain at the target.

    Of those it finds, they are the nearest to the start. None is an answer too: the
    target is out of reach, or is not found within a bounded number of steps.
    """
    if not all(map(math.isfinite, (*target.point, target.turned.angle))):
        return None
    arm = _Arm.of(chain)
    goal = _Goal(target, tolerance_mm, tolerance_rad)
    found: list[list[float]] = []
    for guess in _guesses(chain, start):
        solution = _descend(arm, goal, guess)
        if solution is None:
            continue
        found.append(_unwound(chain, solution, start))
        if len(found) == _ENOUGH or arm.distance(found[-1], start) <= _NEAR:
            break
    return min(found, key=lambda values: arm.distance(values, start), default=None)


@dataclass(frozen=True, slots=True)
class _Goal:
    target: Pose
    tolerance_mm: float
    tolerance_rad: float

    def misses(self, end: Pose) -> tuple[Vector, Vector]:
        """How far to go, and about which axis to turn by how many radians."""
        here, there = end.point, self.target.point
        away = (there[0] - here[0], there[1] - here[1], there[2] - here[2])
        return away, _rotation_vector(self.target.turned * end.turned.inverse())

    def is_met(self, away: Vector, turn: Vector) -> bool:
        return math.hypot(*away) <= self.tolerance_mm and math.hypot(*turn) <= self.tolerance_rad


@dataclass(frozen=True, slots=True)
class _Arm:
    """A chain whose fixed parts are merged: before each joint, and after the last one."""

    joints: tuple[Joint, ...]
    limits: tuple[Limits, ...]
    before: tuple[Pose, ...]
    after: Pose
    reach: float
    """What a radian is worth in millimetres, so that both count alike."""

    @classmethod
    def of(cls, chain: Chain) -> _Arm:
        before: list[Pose] = []
        fixed = Pose.zero()
        reach = 0.0
        for step in chain.steps:
            if isinstance(step, Joint):
                if step.moves:
                    before.append(fixed)
                    fixed = Pose.zero()
            else:
                fixed = fixed.then(step.pose)
                reach += math.hypot(*step.pose.point)
        reach = max(reach / 2, _LEAST_REACH_MM)
        return cls(chain.joints, chain.limits, tuple(before), fixed, reach)

    def distance(self, one: Sequence[float], other: Sequence[float]) -> float:
        return math.hypot(
            *(
                (a - b) if joint.turns else (a - b) / self.reach
                for joint, a, b in zip(self.joints, one, other, strict=True)
            )
        )

    def stand(self, values: Sequence[float]) -> _Stand:
        at: list[Pose] = []
        pose = Pose.zero()
        for joint, before, value in zip(self.joints, self.before, values, strict=True):
            pose = pose.then(before).then(joint.pose(value))
            at.append(pose)
        return _Stand(list(values), at, pose.then(self.after))

    def slopes(self, stand: _Stand) -> list[list[float]]:
        """For each joint, how the end moves and turns with it."""
        return [
            self._slope(joint, at, stand.end.point)
            for joint, at in zip(self.joints, stand.at, strict=True)
        ]

    def _slope(self, joint: Joint, at: Pose, end: Vector) -> list[float]:
        axis = at.turned.rotate(joint.axis)
        if not joint.turns:
            return [*(self.reach * part for part in axis), 0.0, 0.0, 0.0]
        arm = (end[0] - at.point[0], end[1] - at.point[1], end[2] - at.point[2])
        return [*cross(axis, arm), *(self.reach * part for part in axis)]

    def moved(self, values: Sequence[float], change: Sequence[float]) -> list[float]:
        """The values after a change, which is in radians for all, kept within the limits."""
        return [
            min(max(value + (by if joint.turns else by * self.reach), low), high)
            for joint, value, by, (low, high) in zip(
                self.joints, values, change, self.limits, strict=True
            )
        ]


@dataclass(frozen=True, slots=True)
class _Stand:
    """Joint positions, where each joint is with them, and where the end is."""

    values: list[float]
    at: list[Pose]
    end: Pose


def _descend(arm: _Arm, goal: _Goal, guess: Sequence[float]) -> list[float] | None:
    """Downhill from a guess, with large steps while they help and small ones when not."""
    stand = arm.stand(guess)
    away, turn = goal.misses(stand.end)
    error = _error(away, turn, arm.reach)
    damping = 1e-3
    stalled = 0
    for _ in range(_STEPS_EACH):
        if goal.is_met(away, turn):
            return stand.values
        change = _change(arm, stand, away, turn, damping)
        tried = arm.stand(arm.moved(stand.values, change))
        next_away, next_turn = goal.misses(tried.end)
        next_error = _error(next_away, next_turn, arm.reach)
        stalled = stalled + 1 if next_error > 0.98 * error else 0
        if stalled > _STALLED:
            return None
        if next_error < error:
            stand, away, turn, error = tried, next_away, next_turn, next_error
            damping = max(damping / 10, 1e-9)
        else:
            damping *= 10
    return stand.values if goal.is_met(away, turn) else None


def _change(
    arm: _Arm, stand: _Stand, away: Vector, turn: Vector, damping: float
) -> Sequence[float]:
    """The step that closes the gap best. Joints that would only push at a limit stay out."""
    gap = [*away, *(arm.reach * part for part in turn)]
    slopes = arm.slopes(stand)
    change = _damped(slopes, gap, damping * arm.reach**2)
    held = [
        (value <= low and by < 0) or (value >= high and by > 0)
        for value, by, (low, high) in zip(stand.values, change, arm.limits, strict=True)
    ]
    if not any(held):
        return change
    free = [[0.0] * 6 if stays else slope for slope, stays in zip(slopes, held, strict=True)]
    return _damped(free, gap, damping * arm.reach**2)


def _damped(slopes: list[list[float]], gap: list[float], damping: float) -> list[float]:
    """The least change of all joints that closes the gap, shortened by the damping."""
    square = [
        [
            sum(slope[row] * slope[column] for slope in slopes) + (damping if row == column else 0)
            for column in range(6)
        ]
        for row in range(6)
    ]
    weights = _linear(square, gap)
    return [sum(map(_times, slope, weights)) for slope in slopes]


def _linear(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solves a symmetric positive system of six equations by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for pivot, top in enumerate(rows):
        for row in rows[pivot + 1 :]:
            factor = row[pivot] / top[pivot]
            for column in range(pivot, size + 1):
                row[column] -= factor * top[column]
    answer = [0.0] * size
    for pivot in reversed(range(size)):
        known = sum(rows[pivot][column] * answer[column] for column in range(pivot + 1, size))
        answer[pivot] = (rows[pivot][size] - known) / rows[pivot][pivot]
    return answer


def _times(one: float, other: float) -> float:
    return one * other


def _error(away: Vector, turn: Vector, reach: float) -> float:
    return math.hypot(*away, *(reach * part for part in turn))


def _rotation_vector(turned: Quaternion) -> Vector:
    sign = -1.0 if turned.w < 0 else 1.0
    sine = math.hypot(turned.x, turned.y, turned.z)
    scale = sign * 2 * math.atan2(sine, abs(turned.w)) / sine if sine > 0 else 0.0
    return turned.x * scale, turned.y * scale, turned.z * scale


def _guesses(chain: Chain, start: Sequence[float]) -> Iterator[list[float]]:
    """The start, then points spread evenly within the limits, the same ones each time."""
    ranges = [_range(joint, value) for joint, value in zip(chain.joints, start, strict=True)]
    yield [
        min(max(value, low), high) for value, (low, high) in zip(start, chain.limits, strict=True)
    ]
    spread = _golden(len(ranges))
    for number in range(1, _ATTEMPTS):
        yield [
            low + (high - low) * ((0.5 + number * ratio) % 1.0)
            for (low, high), ratio in zip(ranges, spread, strict=True)
        ]


def _range(joint: Joint, value: float) -> Limits:
    """Where to look: the limits of the joint, but no more than a turn around the start."""
    low, high = joint.limits
    if not joint.turns:
        return Limits(max(low, value - 1e4), min(high, value + 1e4))
    return Limits(
        max(low, min(value - math.pi, high - math.tau)),
        min(high, max(value + math.pi, low + math.tau)),
    )


def _golden(dimensions: int) -> list[float]:
    """Ratios whose multiples fill a cube evenly: powers of the generalized golden ratio."""
    ratio = 1.5
    for _ in range(50):
        ratio = (1 + ratio) ** (1 / (dimensions + 1))
    return [ratio ** -(number + 1) for number in range(dimensions)]


def _unwound(chain: Chain, values: Sequence[float], start: Sequence[float]) -> list[float]:
    """The same pose with each turning joint in the turn that is nearest to the start."""
    return [
        _nearest_turn(joint, value, near)
        for joint, value, near in zip(chain.joints, values, start, strict=True)
    ]


def _nearest_turn(joint: Joint, value: float, near: float) -> float:
    if not joint.turns:
        return value
    low, high = joint.limits
    first = math.tau * round((near - value) / math.tau)
    turns = (value + first + more for more in (0.0, -math.tau, math.tau))
    return min(
        (turn for turn in turns if low <= turn <= high),
        key=lambda turn: abs(turn - near),
        default=value,
    )
