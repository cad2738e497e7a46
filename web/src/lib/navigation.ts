/** Positions of a navigation service, as its JSON has them, on a plane in meters. */

import { toGeo, toLocal, type GeoPlace, type Spot } from './geo';
import type { JsonObject } from './json';

export interface Position {
  readonly pose?: { readonly x: number; readonly y: number; readonly theta: number };
  readonly geoPose?: { readonly location?: GeoPlace; readonly heading?: number };
}

/** Where it is; null if the position says nothing. Poses are in millimeters. */
export function toSpot(position: Position | undefined, origin: GeoPlace): Spot | null {
  if (position?.pose) return { x: position.pose.x / 1000, y: position.pose.y / 1000 };
  const place = position?.geoPose?.location;
  return place ? toLocal(place, origin) : null;
}

/** Degrees clockwise from north, or from y. */
export function toHeading(position: Position | undefined): number | null {
  if (position?.pose) return 90 - position.pose.theta;
  return position?.geoPose?.heading ?? null;
}

export function fromSpot(spot: Spot, isGps: boolean, origin: GeoPlace): JsonObject {
  if (!isGps) return { pose: { x: spot.x * 1000, y: spot.y * 1000 } };
  const { latitude, longitude } = toGeo(spot, origin);
  return { geoPose: { location: { latitude, longitude } } };
}

/** `GOAL_STATE_SUCCEEDED` -> `succeeded` */
export function shortenEnum(name: string, prefix: string): string {
  return name.replace(prefix, '').toLowerCase().replaceAll('_', ' ');
}
