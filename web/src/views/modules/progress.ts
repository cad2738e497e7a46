import type { PackageStatus } from '../../machine/status';
import { formatBytes } from '../diagnose/bytes';

/** How far a package is: `40 % of 2.1 GB`. Empty if that is not known, or if nothing is going on. */
export function formatProgress({ state, done, total }: PackageStatus): string {
  if (!['downloading', 'unpacking'].includes(state) || !total) return '';
  return `${Math.floor((100 * done) / total)} % of ${formatBytes(total)}`;
}
