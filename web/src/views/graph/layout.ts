/**
 * A layered drawing of a dependency graph from left to right: dependencies are left of what needs them.
 *
 * Layers are by the longest path, crossings are reduced by barycenters, and heights are the least squares
 * solution that keeps the order. Parts that are not connected are packed beside each other.
 */

export interface GraphNode {
  readonly id: string;
  readonly dependsOn: readonly string[];
}

export interface Placed {
  readonly id: string;
  readonly layer: number;
  /** The upper left corner. */
  readonly x: number;
  readonly y: number;
}

export interface Edge {
  /** The dependency. */
  readonly from: string;
  /** What needs it. */
  readonly to: string;
  /** Where the edge passes, from the right side of one node to the left side of the other. */
  readonly points: readonly (readonly [number, number])[];
}

export interface GraphLayout {
  readonly nodes: readonly Placed[];
  readonly edges: readonly Edge[];
  readonly width: number;
  readonly height: number;
}

export interface LayoutSizes {
  readonly nodeWidth: number;
  readonly nodeHeight: number;
  /** Between layers, and between nodes of a layer. */
  readonly layerGap: number;
  readonly nodeGap: number;
  /** Width by height that the drawing aims at. */
  readonly aspect: number;
}

export const SIZES: LayoutSizes = { nodeWidth: 180, nodeHeight: 46, layerGap: 56, nodeGap: 14, aspect: 1.3 };

const SWEEPS = 12;
/** Places for edges that pass layers. A graph that needs more has its edges drawn straight. */
const MAX_PASSAGES = 4000;

export function layOut(nodes: readonly GraphNode[], sizes: LayoutSizes = SIZES): GraphLayout {
  const known = new Set(nodes.map((each) => each.id));
  const dependencies = new Map(
    nodes.map((each) => [each.id, [...new Set(each.dependsOn)].filter((other) => other !== each.id && known.has(other))]),
  );
  const parts = findComponents(dependencies).map((ids) => layOutComponent(ids, dependencies, sizes));
  return pack(parts, sizes);
}

/** The connected parts, each in the order of the nodes. */
function findComponents(dependencies: ReadonlyMap<string, readonly string[]>): string[][] {
  const neighbors = new Map<string, string[]>([...dependencies.keys()].map((id) => [id, []]));
  for (const [id, others] of dependencies) {
    for (const other of others) {
      neighbors.get(id)!.push(other);
      neighbors.get(other)!.push(id);
    }
  }
  const seen = new Set<string>();
  const components: string[][] = [];
  for (const start of dependencies.keys()) {
    if (seen.has(start)) continue;
    seen.add(start);
    const found = [start];
    for (const id of found) {
      for (const other of neighbors.get(id)!) {
        if (seen.has(other)) continue;
        seen.add(other);
        found.push(other);
      }
    }
    components.push(found);
  }
  return components;
}

/** The dependencies without those that close a cycle. */
function breakCycles(ids: readonly string[], dependencies: ReadonlyMap<string, readonly string[]>): Map<string, string[]> {
  const kept = new Map<string, string[]>(ids.map((id) => [id, []]));
  const finished = new Set<string>();
  const active = new Set<string>();
  for (const root of ids) {
    const stack = [{ id: root, next: 0 }];
    while (stack.length > 0) {
      const top = stack.at(-1)!;
      if (top.next === 0) {
        if (finished.has(top.id)) {
          stack.pop();
          continue;
        }
        active.add(top.id);
      }
      const other = dependencies.get(top.id)![top.next++];
      if (other === undefined) {
        active.delete(top.id);
        finished.add(top.id);
        stack.pop();
      } else if (!active.has(other)) {
        kept.get(top.id)!.push(other);
        if (!finished.has(other)) stack.push({ id: other, next: 0 });
      }
    }
  }
  return kept;
}

/** The number of dependencies in the longest chain below each node. */
export function assignLayers(ids: readonly string[], dependencies: ReadonlyMap<string, readonly string[]>): Map<string, number> {
  const acyclic = breakCycles(ids, dependencies);
  const dependents = new Map<string, string[]>(ids.map((id) => [id, []]));
  const waiting = new Map(ids.map((id) => [id, acyclic.get(id)!.length]));
  for (const [id, others] of acyclic) for (const other of others) dependents.get(other)!.push(id);
  const layers = new Map(ids.map((id) => [id, 0]));
  const ready = ids.filter((id) => waiting.get(id) === 0);
  for (const id of ready) {
    for (const dependent of dependents.get(id)!) {
      layers.set(dependent, Math.max(layers.get(dependent)!, layers.get(id)! + 1));
      waiting.set(dependent, waiting.get(dependent)! - 1);
      if (waiting.get(dependent) === 0) ready.push(dependent);
    }
  }
  return layers;
}

/** A node, or a place where an edge passes a layer. */
interface Slot {
  readonly id: string | null;
  readonly layer: number;
  readonly height: number;
  readonly before: Slot[];
  readonly after: Slot[];
  order: number;
  /** The middle. */
  y: number;
}

function layOutComponent(ids: readonly string[], dependencies: ReadonlyMap<string, readonly string[]>, sizes: LayoutSizes): GraphLayout {
  const layers = assignLayers(ids, dependencies);
  const slots = new Map<string, Slot>();
  const rows: Slot[][] = [];
  const add = (id: string | null, layer: number): Slot => {
    const height = id === null ? sizes.nodeGap / 2 : sizes.nodeHeight;
    const row = (rows[layer] ??= []);
    const slot: Slot = { id, layer, height, before: [], after: [], order: row.length, y: 0 };
    row.push(slot);
    return slot;
  };
  for (const id of ids) slots.set(id, add(id, layers.get(id)!));

  const pairs = ids.flatMap((to) => dependencies.get(to)!.map((from) => ({ from, to })));
  const passages = pairs.reduce((sum, { from, to }) => sum + Math.max(0, layers.get(to)! - layers.get(from)! - 1), 0);
  const chains = pairs.map(({ from, to }) => {
    const chain = [slots.get(from)!];
    if (passages <= MAX_PASSAGES) for (let layer = layers.get(from)! + 1; layer < layers.get(to)!; layer++) chain.push(add(null, layer));
    chain.push(slots.get(to)!);
    return { from, to, chain };
  });
  for (const { chain } of chains) {
    for (const [index, slot] of chain.slice(1).entries()) {
      const previous = chain[index]!;
      if (previous.layer >= slot.layer) continue;
      previous.after.push(slot);
      slot.before.push(previous);
    }
  }
  reduceCrossings(rows);
  placeVertically(rows, sizes.nodeGap);

  const step = sizes.nodeWidth + sizes.layerGap;
  const nodes = ids.map((id) => {
    const { layer, y } = slots.get(id)!;
    return { id, layer, x: layer * step, y: y - sizes.nodeHeight / 2 };
  });
  const edges = chains.map(({ from, to, chain }) => ({
    from,
    to,
    points: chain.flatMap((slot, index): [number, number][] => {
      const [left, right] = [slot.layer * step, slot.layer * step + sizes.nodeWidth];
      if (index === 0) return [[right, slot.y]];
      if (index === chain.length - 1) return [[left, slot.y]];
      return [
        [left, slot.y],
        [right, slot.y],
      ];
    }),
  }));
  const height = Math.max(...nodes.map((each) => each.y + sizes.nodeHeight));
  return { nodes, edges, width: (rows.length - 1) * step + sizes.nodeWidth, height };
}

function reduceCrossings(rows: Slot[][]): void {
  let best = rows.map((row) => [...row]);
  let fewest = countCrossings(rows);
  for (let sweep = 0; sweep < SWEEPS && fewest > 0; sweep++) {
    const isForward = sweep % 2 === 0;
    for (const row of isForward ? rows : rows.toReversed()) {
      const weights = new Map(row.map((slot) => [slot, barycenter(isForward ? slot.before : slot.after, slot.order)]));
      row.sort((a, b) => weights.get(a)! - weights.get(b)! || a.order - b.order);
      number(row);
    }
    const crossings = countCrossings(rows);
    if (crossings < fewest) [best, fewest] = [rows.map((row) => [...row]), crossings];
  }
  for (const [index, row] of best.entries()) {
    rows[index] = row;
    number(row);
  }
}

function number(row: readonly Slot[]): void {
  for (const [index, slot] of row.entries()) slot.order = index;
}

function barycenter(neighbors: readonly Slot[], fallback: number): number {
  if (neighbors.length === 0) return fallback;
  return neighbors.reduce((sum, each) => sum + each.order, 0) / neighbors.length;
}

/** Counts inversions between neighboring layers with a binary indexed tree. */
function countCrossings(rows: readonly (readonly Slot[])[]): number {
  let crossings = 0;
  for (const row of rows) {
    const ends = row.flatMap((slot) => slot.after.map((each) => each.order).sort((a, b) => a - b));
    const tree: number[] = new Array(Math.max(0, ...ends) + 2).fill(0);
    for (const [index, end] of ends.entries()) {
      let notLater = 0;
      for (let at = end + 1; at > 0; at -= at & -at) notLater += tree[at]!;
      crossings += index - notLater;
      for (let at = end + 1; at < tree.length; at += at & -at) tree[at]! += 1;
    }
  }
  return crossings;
}

function placeVertically(rows: readonly Slot[][], gap: number): void {
  for (const row of rows)
    place(
      row,
      row.map(() => 0),
      gap,
    );
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const isForward = sweep % 2 === 0;
    for (const row of isForward ? rows : rows.toReversed()) {
      const wanted = row.map((slot) => {
        const near = isForward ? slot.before : slot.after;
        return near.length > 0 ? near.reduce((sum, each) => sum + each.y, 0) / near.length : slot.y;
      });
      place(row, wanted, gap);
    }
  }
  const top = Math.min(...rows.flat().map((slot) => slot.y - slot.height / 2));
  for (const slot of rows.flat()) slot.y -= top;
}

/** Puts the slots as near as possible to the wanted heights, in their order and without overlaps. */
function place(row: readonly Slot[], wanted: readonly number[], gap: number): void {
  let offset = 0;
  const offsets = row.map((slot, index) => {
    if (index > 0) offset += (row[index - 1]!.height + slot.height) / 2 + gap;
    return offset;
  });
  // Pool adjacent violators: values that would overlap get the mean of their pool.
  const pools: { mean: number; count: number }[] = [];
  for (const [index, value] of wanted.entries()) {
    pools.push({ mean: value - offsets[index]!, count: 1 });
    while (pools.length > 1 && pools.at(-2)!.mean > pools.at(-1)!.mean) {
      const [last, previous] = [pools.pop()!, pools.pop()!];
      const count = last.count + previous.count;
      pools.push({ mean: (last.mean * last.count + previous.mean * previous.count) / count, count });
    }
  }
  let index = 0;
  for (const { mean, count } of pools) for (let each = 0; each < count; each++, index++) row[index]!.y = mean + offsets[index]!;
}

/** Puts the parts on shelves, large ones first and small ones beside them. */
function pack(parts: readonly GraphLayout[], sizes: LayoutSizes): GraphLayout {
  const gap = sizes.nodeGap;
  const sorted = parts.toSorted((a, b) => b.nodes.length - a.nodes.length || b.height - a.height);
  const area = sorted.reduce((sum, each) => sum + (each.width + sizes.layerGap) * (each.height + gap), 0);
  const limit = Math.max(Math.sqrt(area * sizes.aspect), ...sorted.map((each) => each.width));
  const nodes: Placed[] = [];
  const edges: Edge[] = [];
  let [x, y, shelf, width] = [0, 0, 0, 0];
  // Parts of a shelf are stacked in columns, as high as the first part of the shelf.
  let [columnWidth, columnHeight] = [0, 0];
  for (const part of sorted) {
    if (columnHeight > 0 && columnHeight + part.height > shelf) {
      [x, columnWidth, columnHeight] = [x + columnWidth + sizes.layerGap, 0, 0];
      if (x + part.width > limit || part.height > shelf) [x, y, shelf] = [0, y + shelf + 2 * gap, 0];
    } else if (x + part.width > limit) [x, y, shelf, columnWidth, columnHeight] = [0, y + shelf + 2 * gap, 0, 0, 0];
    const top = y + columnHeight;
    for (const node of part.nodes) nodes.push({ ...node, x: node.x + x, y: node.y + top });
    for (const edge of part.edges) edges.push({ ...edge, points: edge.points.map(([left, at]) => [left + x, at + top]) });
    shelf = Math.max(shelf, part.height);
    columnWidth = Math.max(columnWidth, part.width);
    columnHeight += part.height + gap;
    width = Math.max(width, x + part.width);
  }
  return { nodes, edges, width, height: y + shelf };
}

/** The nodes that these depend on, directly or not, and those that depend on them. */
export function findTouched(nodes: readonly GraphNode[], seeds: Iterable<string>): Set<string> {
  const down = new Map(nodes.map((each) => [each.id, each.dependsOn]));
  const up = new Map<string, string[]>();
  for (const { id, dependsOn } of nodes) for (const other of dependsOn) up.set(other, [...(up.get(other) ?? []), id]);
  const start = [...seeds];
  return new Set([...reach(start, down), ...reach(start, up)]);
}

function reach(seeds: readonly string[], next: ReadonlyMap<string, readonly string[]>): Set<string> {
  const found = new Set(seeds);
  for (const id of found) for (const other of next.get(id) ?? []) found.add(other);
  return found;
}
