import type { VisionClient } from '@viamrobotics/sdk';
import type { Candidate, Minimums } from './selection';

/** The milliseconds of a step, in the order in which they happen. */
export type Steps = readonly (readonly [name: string, milliseconds: number])[];

/** A picture and everything that was found on it, of one call. */
export interface Capture {
  readonly picture: ImageBitmap | null;
  readonly candidates: readonly Candidate[];
  readonly classes: readonly Candidate[];
  readonly objects: Awaited<ReturnType<VisionClient['captureAllFromCamera']>>['objectPointClouds'];
  /** Of the service; null if it does not tell. */
  readonly minimums: Minimums | null;
  readonly steps: Steps;
  /** Milliseconds of the call. */
  readonly took: number;
  /** When the picture was taken, in seconds since 1970 on the machine's clock; null if it does not tell. */
  readonly takenAt: number | null;
}

const STEPS = ['frame', 'preprocess', 'inference', 'decode'];

interface Explained {
  filtered?: Filtered[];
  filtered_classifications?: Filtered[];
  minimum_confidence?: number | null;
  minimum_confidence_by_label?: Record<string, number>;
  milliseconds?: Record<string, number>;
  captured_at?: number;
}

interface Filtered {
  class_name: string;
  confidence: number;
  rule: string;
  x_min: number;
  y_min: number;
  x_max: number;
  y_max: number;
}

export interface Abilities {
  readonly classificationsSupported: boolean;
  readonly detectionsSupported: boolean;
  readonly objectPointCloudsSupported: boolean;
}

export async function capture(service: VisionClient, camera: string, abilities: Abilities): Promise<Capture> {
  const begin = performance.now();
  const reply = await service.captureAllFromCamera(
    camera,
    {
      returnImage: true,
      returnDetections: abilities.detectionsSupported,
      returnClassifications: abilities.classificationsSupported,
      returnObjectPointClouds: abilities.objectPointCloudsSupported,
    },
    { explain: true },
  );
  const took = performance.now() - begin;
  const explained = ((reply.extra?.toJson() ?? {}) as { explain?: Explained }).explain;
  return {
    picture: reply.image ? await decode(reply.image.image, reply.image.mimeType) : null,
    candidates: [
      ...reply.detections.map((each) => ({
        label: each.className,
        confidence: each.confidence,
        rule: '',
        box: { left: Number(each.xMin), top: Number(each.yMin), right: Number(each.xMax), bottom: Number(each.yMax) },
      })),
      ...(explained?.filtered ?? []).map((each) => ({
        label: each.class_name,
        confidence: each.confidence,
        rule: each.rule,
        box: { left: each.x_min, top: each.y_min, right: each.x_max, bottom: each.y_max },
      })),
    ],
    classes: [
      ...reply.classifications.map((each) => ({ label: each.className, confidence: each.confidence, rule: '' })),
      ...(explained?.filtered_classifications ?? []).map((each) => ({
        label: each.class_name,
        confidence: each.confidence,
        rule: each.rule,
      })),
    ],
    objects: reply.objectPointClouds,
    minimums: explained ? { overall: explained.minimum_confidence ?? null, byLabel: explained.minimum_confidence_by_label ?? {} } : null,
    steps: withNetwork(explained?.milliseconds ?? {}, took),
    took,
    takenAt: explained?.captured_at ?? null,
  };
}

function withNetwork(milliseconds: Readonly<Record<string, number>>, took: number): Steps {
  const steps = STEPS.flatMap((name) => (milliseconds[name] === undefined ? [] : [[name, milliseconds[name]] as const]));
  if (steps.length === 0) return [];
  const known = steps.reduce((sum, [, each]) => sum + each, 0);
  return [...steps, ['network', Math.max(0, took - known)]];
}

async function decode(bytes: Uint8Array, mimeType: string): Promise<ImageBitmap> {
  return createImageBitmap(new Blob([bytes as Uint8Array<ArrayBuffer>], { type: mimeType || 'image/jpeg' }));
}
