import type { PointCloud } from '../../lib/pcd';
import { formatCount, pluralize } from '../../lib/text';

/** `12,288 points, 0.81 × 0.6 × 0.4 m` */
export function describeCloud(cloud: PointCloud): string {
  const left = cloud.total - cloud.count;
  const points = left > 0 ? `${formatCount(cloud.count)} of ${pluralize(cloud.total, 'point')}` : pluralize(cloud.count, 'point');
  if (cloud.count === 0) return points;
  const size = cloud.high.map((high, axis) => Number((high - cloud.low[axis]!).toFixed(3)));
  return `${points}, ${size.join(' × ')} m`;
}
