import type { PointCloud } from '../../lib/pcd';

const COUNT = new Intl.NumberFormat('en');

/** `12,288 points, 0.81 × 0.6 × 0.4 m` */
export function describeCloud(cloud: PointCloud): string {
  const left = cloud.total - cloud.count;
  const points = left > 0 ? `${COUNT.format(cloud.count)} of ${COUNT.format(cloud.total)}` : COUNT.format(cloud.count);
  if (cloud.count === 0) return `${points} points`;
  const size = cloud.high.map((high, axis) => Number((high - cloud.low[axis]!).toFixed(3)));
  return `${points} points, ${size.join(' × ')} m`;
}
