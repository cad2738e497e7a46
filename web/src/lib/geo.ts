/** A place on the plane, in meters: x to the east, y to the north. */
export interface Spot {
  readonly x: number;
  readonly y: number;
}

export interface GeoPlace {
  readonly latitude: number;
  readonly longitude: number;
}

const METERS_PER_DEGREE = (Math.PI / 180) * 6_371_008.8;

/** Meters east and north of the origin. Good for some kilometers around it. */
export function toLocal(place: GeoPlace, origin: GeoPlace): Spot {
  const east = ((place.longitude - origin.longitude + 540) % 360) - 180;
  return {
    x: east * METERS_PER_DEGREE * Math.cos((origin.latitude * Math.PI) / 180),
    y: (place.latitude - origin.latitude) * METERS_PER_DEGREE,
  };
}

/** The opposite of `toLocal`. */
export function toGeo(spot: Spot, origin: GeoPlace): GeoPlace {
  const scale = METERS_PER_DEGREE * Math.cos((origin.latitude * Math.PI) / 180);
  return { latitude: origin.latitude + spot.y / METERS_PER_DEGREE, longitude: origin.longitude + spot.x / scale };
}

/** The middle and the width of the square that contains all spots, at least `least` wide. */
export function findExtent(spots: readonly Spot[], least: number): { center: Spot; size: number } {
  if (spots.length === 0) return { center: { x: 0, y: 0 }, size: least };
  const [xs, ys] = [spots.map((each) => each.x), spots.map((each) => each.y)];
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  return { center: { x: (left + right) / 2, y: (low + high) / 2 }, size: Math.max(least, right - left, high - low) };
}

/** The largest of 1, 2 or 5 times a power of ten that is not above the length. */
export function roundDown(length: number): number {
  const power = 10 ** Math.floor(Math.log10(length));
  return [5, 2, 1].map((each) => each * power).find((each) => each <= length * 1.000001) ?? power;
}
