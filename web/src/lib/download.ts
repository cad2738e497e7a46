/** Saves data as a file on the computer of the browser. */
export function download(data: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(data);
  link.download = name.replaceAll(/[^\w.-]+/g, '_');
  link.click();
  // The browser has taken the address by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** `belt-2026-11-17T01-50-00.jpg` */
export function timedName(name: string, extension: string, now: Date): string {
  return `${name}-${now.toISOString().slice(0, 19).replaceAll(':', '-')}.${extension}`;
}
