import { advance, ORIGIN, REST, type PlanarPose, type Velocity } from './odometry';

const MAX_POINTS = 2000;
const MIN_DISTANCE = 5;
const MAX_STEP = 0.1;

/** The path that follows from the commanded velocities. */
export class Odometer {
  pose = $state.raw<PlanarPose>(ORIGIN);
  version = $state(0);
  isMoving = $state(false);
  points: PlanarPose[] = [ORIGIN];

  #velocity = REST;
  #since = 0;

  /** From this time on, in milliseconds, it moves at this velocity. */
  setVelocity(velocity: Velocity, time: number): void {
    this.update(time);
    this.#velocity = velocity;
    this.#since = time;
    this.isMoving = velocity.linear !== 0 || velocity.angular !== 0;
  }

  update(time: number): void {
    // The time of a frame may be a little before the command that came in it.
    const seconds = (time - this.#since) / 1000;
    if (!this.isMoving || seconds <= 0) return;
    this.#since = time;
    // Frames may be far apart, but the path is an arc.
    const steps = Math.min(Math.ceil(seconds / MAX_STEP), MAX_POINTS);
    for (let step = 0; step < steps; step++) this.moveTo(advance(this.pose, this.#velocity, seconds / steps));
  }

  moveTo(pose: PlanarPose): void {
    const [last, before] = [this.points.at(-1)!, this.points.at(-2)];
    // The last point follows the pose until it is worth keeping.
    const isKept = before === undefined || Math.hypot(last.x - before.x, last.y - before.y) >= MIN_DISTANCE;
    if (isKept) this.points.push(pose);
    else this.points[this.points.length - 1] = pose;
    if (this.points.length > MAX_POINTS) this.points.shift();
    this.pose = pose;
    this.version += 1;
  }

  clear(): void {
    this.points = [ORIGIN];
    this.pose = ORIGIN;
    this.version += 1;
  }
}
