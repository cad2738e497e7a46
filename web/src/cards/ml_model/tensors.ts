import type { FlatTensors } from '@viamrobotics/sdk';

interface TensorInfo {
  readonly name: string;
  readonly dataType: string;
  readonly shape: readonly number[];
}

const MAX_VALUES = 1 << 22;
/** Bytes of a value, of the types that are sent as bytes. */
const BYTES: Readonly<Record<string, number>> = { int8: 1, uint8: 1 };
const CASES: Readonly<Record<string, string>> = {
  int8: 'int8Tensor',
  uint8: 'uint8Tensor',
  int16: 'int16Tensor',
  uint16: 'uint16Tensor',
  int32: 'int32Tensor',
  uint32: 'uint32Tensor',
  int64: 'int64Tensor',
  uint64: 'uint64Tensor',
  float32: 'floatTensor',
  float64: 'doubleTensor',
};

/** Inputs of a model that are all zero; an open extent is 1. */
export function makeZeros(inputs: readonly TensorInfo[]): FlatTensors {
  return { tensors: Object.fromEntries(inputs.map((each) => [each.name, makeZero(each)])) } as FlatTensors;
}

function makeZero({ name, dataType, shape }: TensorInfo): object {
  const extents = shape.map((each) => Math.max(1, each));
  const count = extents.reduce((product, each) => product * each, 1);
  const kind = CASES[dataType];
  if (kind === undefined) throw new Error(`the page cannot make an input "${name}" of type ${dataType}`);
  if (count > MAX_VALUES) throw new Error(`the input "${name}" is too large to be tried from here`);
  const zero = dataType.endsWith('64') && dataType !== 'float64' ? 0n : 0;
  const data = dataType in BYTES ? new Uint8Array(count) : new Array(count).fill(zero);
  return { shape: extents.map(BigInt), tensor: { case: kind, value: { data } } };
}
