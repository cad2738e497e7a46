import { describe, expect, it } from 'vitest';
import { findExtent, roundDown, toGeo, toLocal } from './geo';

const BERLIN = { latitude: 52.5, longitude: 13.4 };

describe('toLocal', () => {
  it('is north for more latitude, and east for more longitude', () => {
    const spot = toLocal({ latitude: 52.501, longitude: 13.401 }, BERLIN);
    expect(spot.y).toBeCloseTo(111.2, 0);
    expect(spot.x).toBeCloseTo(67.7, 0);
  });
  it('crosses the date line', () => {
    const spot = toLocal({ latitude: 0, longitude: -179.999 }, { latitude: 0, longitude: 179.999 });
    expect(spot.x).toBeCloseTo(222.4, 0);
  });
  it('is undone by toGeo', () => {
    const place = toGeo(toLocal({ latitude: 52.51, longitude: 13.39 }, BERLIN), BERLIN);
    expect(place.latitude).toBeCloseTo(52.51, 9);
    expect(place.longitude).toBeCloseTo(13.39, 9);
  });
});

it('finds the square around spots', () => {
  expect(
    findExtent(
      [
        { x: 1, y: 2 },
        { x: 5, y: 4 },
      ],
      1,
    ),
  ).toEqual({ center: { x: 3, y: 3 }, size: 4 });
  expect(findExtent([], 2)).toEqual({ center: { x: 0, y: 0 }, size: 2 });
});

it('rounds lengths for a scale', () => {
  expect([7, 1, 0.3, 49, 5000].map(roundDown)).toEqual([5, 1, 0.2, 20, 5000]);
});
