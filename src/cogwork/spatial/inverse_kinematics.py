"""Inverse kinematics: damped least squares (Levenberg-Marquardt) with several initial guesses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cogwork.spatial.chain import Chain, Joint, JointLimits
from cogwork.spatial.pose import Pose, Quaternion, Vector, cross

_MAX_ATTEMPTS = 60
_MAX_ITERATIONS = 40
_MAX_SOLUTIONS = 4
"""Number of solutions after which the search ends, even if none is close to the start."""
_NEAR_DISTANCE = 1.0
_MAX_STALLED = 6
_MIN_REACH_MM = 100.0


def solve_inverse_kinematics(
    chain: Chain,
    target: Pose,
    start: Sequence[float],
    *,
    tolerance_mm: float = 0.01,
    tolerance_rad: float = 1e-4,
) -> list[float] | None:
    """Return joint positions within the limits that move the end of the chain to the target.

    Of several solutions, return the nearest to the start. Return None if the target is out of
    reach, or if no solution is found within a bounded number of steps.
    """
    if not all(map(math.isfinite, (*target.point, target.rotation.angle))):
        return None
    arm = _ReducedChain.from_chain(chain)
    goal = _Goal(target, tolerance_mm, tolerance_rad)
    found: list[list[float]] = []
    for guess in _initial_guesses(chain, start):
        solution = _levenberg_marquardt(arm, goal, guess)
        if solution is None:
            continue
        found.append(_unwind(chain, solution, start))
        if len(found) == _MAX_SOLUTIONS or arm.distance(found[-1], start) <= _NEAR_DISTANCE:
            break
    return min(found, key=lambda values: arm.distance(values, start), default=None)


@dataclass(frozen=True, slots=True)
class _Goal:
    target: Pose
    tolerance_mm: float
    tolerance_rad: float

    def pose_error(self, end: Pose) -> tuple[Vector, Vector]:
        """Return the translation in millimeters and the rotation vector that lead from `end` to the
        target."""
        here, there = end.point, self.target.point
        offset = (there[0] - here[0], there[1] - here[1], there[2] - here[2])
        return offset, _rotation_vector(self.target.rotation * end.rotation.inverse())

    def is_met(self, offset: Vector, rotation: Vector) -> bool:
        return (
            math.hypot(*offset) <= self.tolerance_mm and math.hypot(*rotation) <= self.tolerance_rad
        )


@dataclass(frozen=True, slots=True)
class _ReducedChain:
    """A chain with all fixed transforms merged into one before each joint and one after the
    last."""

    joints: tuple[Joint, ...]
    limits: tuple[JointLimits, ...]
    before: tuple[Pose, ...]
    after: Pose
    reach: float
    """Millimeters per radian: the weight of rotations relative to translations."""

    @classmethod
    def from_chain(cls, chain: Chain) -> _ReducedChain:
        before: list[Pose] = []
        fixed = Pose.identity()
        reach = 0.0
        for element in chain.elements:
            if isinstance(element, Joint):
                if element.is_movable:
                    before.append(fixed)
                    fixed = Pose.identity()
            else:
                fixed = fixed.compose(element.pose)
                reach += math.hypot(*element.pose.point)
        reach = max(reach / 2, _MIN_REACH_MM)
        return cls(chain.joints, chain.limits, tuple(before), fixed, reach)

    def distance(self, one: Sequence[float], other: Sequence[float]) -> float:
        return math.hypot(
            *(
                (a - b) if joint.is_rotary else (a - b) / self.reach
                for joint, a, b in zip(self.joints, one, other, strict=True)
            )
        )

    def forward_kinematics(self, values: Sequence[float]) -> _ChainState:
        joint_poses: list[Pose] = []
        pose = Pose.identity()
        for joint, before, value in zip(self.joints, self.before, values, strict=True):
            pose = pose.compose(before).compose(joint.pose(value))
            joint_poses.append(pose)
        return _ChainState(list(values), joint_poses, pose.compose(self.after))

    def jacobian(self, state: _ChainState) -> list[list[float]]:
        """Return the columns of the Jacobian: how the end moves and rotates with each joint."""
        return [
            self._jacobian_column(joint, at, state.end.point)
            for joint, at in zip(self.joints, state.joint_poses, strict=True)
        ]

    def _jacobian_column(self, joint: Joint, at: Pose, end: Vector) -> list[float]:
        axis = at.rotation.rotate(joint.axis)
        if not joint.is_rotary:
            return [*(self.reach * part for part in axis), 0.0, 0.0, 0.0]
        arm = (end[0] - at.point[0], end[1] - at.point[1], end[2] - at.point[2])
        return [*cross(axis, arm), *(self.reach * part for part in axis)]

    def apply_step(self, values: Sequence[float], change: Sequence[float]) -> list[float]:
        """Return the values after a change, clamped to the limits.

        The change is in radians for every joint; `reach` converts it for prismatic joints.
        """
        return [
            min(max(value + (by if joint.is_rotary else by * self.reach), low), high)
            for joint, value, by, (low, high) in zip(
                self.joints, values, change, self.limits, strict=True
            )
        ]


@dataclass(frozen=True, slots=True)
class _ChainState:
    """Joint positions, and the resulting poses of the joints and of the end."""

    values: list[float]
    joint_poses: list[Pose]
    end: Pose


def _levenberg_marquardt(
    arm: _ReducedChain, goal: _Goal, guess: Sequence[float]
) -> list[float] | None:
    """Minimize the pose error from a guess; adapt the damping to the success of each step."""
    state = arm.forward_kinematics(guess)
    offset, rotation = goal.pose_error(state.end)
    error = _weighted_error(offset, rotation, arm.reach)
    damping = 1e-3
    stalled = 0
    for _ in range(_MAX_ITERATIONS):
        if goal.is_met(offset, rotation):
            return state.values
        change = _compute_step(arm, state, offset, rotation, damping)
        candidate = arm.forward_kinematics(arm.apply_step(state.values, change))
        next_offset, next_rotation = goal.pose_error(candidate.end)
        next_error = _weighted_error(next_offset, next_rotation, arm.reach)
        stalled = stalled + 1 if next_error > 0.98 * error else 0
        if stalled > _MAX_STALLED:
            return None
        if next_error < error:
            state, offset, rotation, error = candidate, next_offset, next_rotation, next_error
            damping = max(damping / 10, 1e-9)
        else:
            damping *= 10
    return state.values if goal.is_met(offset, rotation) else None


def _compute_step(
    arm: _ReducedChain, state: _ChainState, offset: Vector, rotation: Vector, damping: float
) -> Sequence[float]:
    """Return the change that reduces the error most. Joints at a limit stay fixed if the change
    would move them past the limit."""
    error = [*offset, *(arm.reach * part for part in rotation)]
    jacobian = arm.jacobian(state)
    change = _damped_least_squares(jacobian, error, damping * arm.reach**2)
    blocked = [
        (value <= low and by < 0) or (value >= high and by > 0)
        for value, by, (low, high) in zip(state.values, change, arm.limits, strict=True)
    ]
    if not any(blocked):
        return change
    free = [
        [0.0] * 6 if is_blocked else column
        for column, is_blocked in zip(jacobian, blocked, strict=True)
    ]
    return _damped_least_squares(free, error, damping * arm.reach**2)


def _damped_least_squares(
    jacobian: list[list[float]], error: list[float], damping: float
) -> list[float]:
    """Return the changes of the joints that correct a pose error, by damped least squares.

    `jacobian` holds one column for each joint.
    """
    square = [
        [
            sum(each[row] * each[column] for each in jacobian) + (damping if row == column else 0)
            for column in range(6)
        ]
        for row in range(6)
    ]
    weights = _solve_linear(square, error)
    return [sum(map(_multiply, column, weights)) for column in jacobian]


def _solve_linear(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve a symmetric positive definite linear system by Gaussian elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for pivot, top in enumerate(rows):
        for row in rows[pivot + 1 :]:
            factor = row[pivot] / top[pivot]
            for column in range(pivot, size + 1):
                row[column] -= factor * top[column]
    solution = [0.0] * size
    for pivot in reversed(range(size)):
        known = sum(rows[pivot][column] * solution[column] for column in range(pivot + 1, size))
        solution[pivot] = (rows[pivot][size] - known) / rows[pivot][pivot]
    return solution


def _multiply(one: float, other: float) -> float:
    return one * other


def _weighted_error(offset: Vector, rotation: Vector, reach: float) -> float:
    return math.hypot(*offset, *(reach * part for part in rotation))


def _rotation_vector(rotation: Quaternion) -> Vector:
    sign = -1.0 if rotation.w < 0 else 1.0
    sine = math.hypot(rotation.x, rotation.y, rotation.z)
    scale = sign * 2 * math.atan2(sine, abs(rotation.w)) / sine if sine > 0 else 0.0
    return rotation.x * scale, rotation.y * scale, rotation.z * scale


def _initial_guesses(chain: Chain, start: Sequence[float]) -> Iterator[list[float]]:
    """Yield the start, then a deterministic low-discrepancy sequence within the limits."""
    ranges = [_search_range(joint, value) for joint, value in zip(chain.joints, start, strict=True)]
    yield [
        min(max(value, low), high) for value, (low, high) in zip(start, chain.limits, strict=True)
    ]
    spread = _golden_ratios(len(ranges))
    for number in range(1, _MAX_ATTEMPTS):
        yield [
            low + (high - low) * ((0.5 + number * ratio) % 1.0)
            for (low, high), ratio in zip(ranges, spread, strict=True)
        ]


def _search_range(joint: Joint, value: float) -> JointLimits:
    """Return the range of guesses for a joint.

    It is within the joint limits, and within half a revolution of the start for a rotary joint, or
    10 m for a prismatic one.
    """
    low, high = joint.limits
    if not joint.is_rotary:
        return JointLimits(max(low, value - 1e4), min(high, value + 1e4))
    return JointLimits(
        max(low, min(value - math.pi, high - math.tau)),
        min(high, max(value + math.pi, low + math.tau)),
    )


def _golden_ratios(dimensions: int) -> list[float]:
    """Return ratios whose multiples fill a cube evenly: powers of the generalized golden ratio."""
    ratio = 1.5
    for _ in range(50):
        ratio = (1 + ratio) ** (1 / (dimensions + 1))
    return [ratio ** -(number + 1) for number in range(dimensions)]


def _unwind(chain: Chain, values: Sequence[float], start: Sequence[float]) -> list[float]:
    """Shift rotary joints by full revolutions to the values nearest to the start."""
    return [
        _nearest_turn(joint, value, near)
        for joint, value, near in zip(chain.joints, values, start, strict=True)
    ]


def _nearest_turn(joint: Joint, value: float, near: float) -> float:
    if not joint.is_rotary:
        return value
    low, high = joint.limits
    first = math.tau * round((near - value) / math.tau)
    turns = (value + first + more for more in (0.0, -math.tau, math.tau))
    return min(
        (turn for turn in turns if low <= turn <= high),
        key=lambda turn: abs(turn - near),
        default=value,
    )
