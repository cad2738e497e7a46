/** A camera that looks at a point from around it, with z up. Meters and radians. */

export type Vector3 = [number, number, number];

export type Side = 'top' | 'front' | 'right';

const STEEPEST = Math.PI / 2 - 1e-3;
const NEAREST = 0.01;
const FARTHEST = 10_000;

export class Orbit {
  target: Vector3 = [0, 0, 0];
  distance = 3;
  /** About z; 0: the camera is on the x axis. */
  azimuth = -Math.PI / 4;
  /** Above the horizon. */
  elevation = Math.PI / 6;

  get position(): Vector3 {
    const [x, y, z] = this.#direction();
    return [this.target[0] + x * this.distance, this.target[1] + y * this.distance, this.target[2] + z * this.distance];
  }

  turn(azimuth: number, elevation: number): void {
    this.azimuth = (this.azimuth + azimuth) % (2 * Math.PI);
    this.elevation = Math.max(-STEEPEST, Math.min(STEEPEST, this.elevation + elevation));
  }

  /** Moves what is looked at, by fractions of the distance to the right and up in the picture. */
  pan(right: number, up: number): void {
    const [sine, cosine] = [Math.sin(this.azimuth), Math.cos(this.azimuth)];
    const [tilt, level] = [Math.sin(this.elevation), Math.cos(this.elevation)];
    const [across, along] = [right * this.distance, up * this.distance];
    this.target[0] += -sine * across - cosine * tilt * along;
    this.target[1] += cosine * across - sine * tilt * along;
    this.target[2] += level * along;
  }

  zoom(factor: number): void {
    this.distance = Math.max(NEAREST, Math.min(FARTHEST, this.distance * factor));
  }

  look(side: Side): void {
    this.azimuth = side === 'right' ? 0 : -Math.PI / 2;
    this.elevation = side === 'top' ? STEEPEST : 0;
  }

  /** Looks at a sphere so that all of it is in the picture. The angles belong to the picture's height and width. */
  fit(center: Vector3, radius: number, height: number, width: number): void {
    this.target = [...center];
    this.distance = Math.max(NEAREST, Math.min(FARTHEST, (radius / Math.sin(Math.min(height, width) / 2)) * 1.05));
  }

  #direction(): Vector3 {
    const level = Math.cos(this.elevation);
    return [level * Math.cos(this.azimuth), level * Math.sin(this.azimuth), Math.sin(this.elevation)];
  }
}

/** The distance between the lines of a grid that is seen from so far: 0.1, 1, 10 … meters. */
export function gridStep(distance: number): number {
  return 10 ** Math.min(3, Math.max(-2, Math.floor(Math.log10(Math.max(distance, 1e-9) / 4))));
}
