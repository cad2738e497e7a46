const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'] as const;

/** A size for reading: `512 B`, `38 MB`, `1.2 GB`. */
export function formatBytes(bytes: number): string {
  let [size, unit] = [Math.max(0, bytes), 0];
  while (size >= 999.5 && unit < UNITS.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit > 0 && size < 9.95 ? size.toFixed(1) : Math.round(size)} ${UNITS[unit]}`;
}
