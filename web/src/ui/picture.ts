import type { Range } from '../lib/raw_image';

/** What a camera shows at this moment. */
export interface PictureInfo {
  readonly width: number;
  readonly height: number;
  /** Whether it is video. */
  readonly isLive: boolean;
  /** The names of what the camera can show; empty if that is not known. */
  readonly sources: readonly string[];
  readonly source: string;
  /** The range of a depth map. */
  readonly depth: Range | null;
}

export interface Snapshot {
  readonly data: Blob;
  readonly extension: string;
}

export async function encodeCanvas(canvas: HTMLCanvasElement, type: 'image/png' | 'image/jpeg'): Promise<Snapshot | null> {
  const data = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, type, 0.92));
  return data && { data, extension: type === 'image/png' ? 'png' : 'jpg' };
}
