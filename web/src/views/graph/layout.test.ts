import { describe, expect, test } from 'vitest';
import { findTouched, layOut, SIZES, type GraphNode } from './layout';

const node = (id: string, ...dependsOn: string[]): GraphNode => ({ id, dependsOn });
const byId = (nodes: readonly GraphNode[]) => new Map(layOut(nodes).nodes.map((each) => [each.id, each]));

function makeRandom(seed: number): () => number {
  return () => (seed = (seed * 16807) % 2147483647) / 2147483647;
}

function makeGraph(count: number, edges: number, seed = 7): GraphNode[] {
  const random = makeRandom(seed);
  return Array.from({ length: count }, (_, index) =>
    node(`n${index}`, ...Array.from({ length: index ? Math.floor(random() * edges * 2) : 0 }, () => `n${Math.floor(random() * index)}`)),
  );
}

function hasOverlap(nodes: readonly GraphNode[]): boolean {
  const placed = layOut(nodes).nodes;
  return placed.some((a, index) =>
    placed.slice(index + 1).some((b) => Math.abs(a.x - b.x) < SIZES.nodeWidth - 0.01 && Math.abs(a.y - b.y) < SIZES.nodeHeight - 0.01),
  );
}

describe('layers', () => {
  test('a node is right of all that it depends on, by the longest path', () => {
    const found = byId([node('base', 'left', 'board'), node('left', 'board'), node('board')]);
    expect(['board', 'left', 'base'].map((id) => found.get(id)!.layer)).toEqual([0, 1, 2]);
  });

  test('holds for any graph without cycles', () => {
    for (let seed = 1; seed < 20; seed++) {
      const nodes = makeGraph(40, 2, seed);
      const found = byId(nodes);
      for (const { id, dependsOn } of nodes) for (const other of dependsOn) expect(found.get(other)!.x).toBeLessThan(found.get(id)!.x);
    }
  });

  test('cycles, itself and unknown names do not hinder it', () => {
    const { nodes, edges } = layOut([node('a', 'b'), node('b', 'c'), node('c', 'a', 'c', 'nowhere')]);
    expect(nodes.length).toBe(3);
    expect(edges.length).toBe(3);
    expect(nodes.every((each) => Number.isFinite(each.x) && Number.isFinite(each.y))).toBe(true);
  });
});

test('nodes never overlap', () => {
  for (let seed = 1; seed < 20; seed++) expect(hasOverlap(makeGraph(60, 1.5, seed))).toBe(false);
  expect(hasOverlap(Array.from({ length: 100 }, (_, index) => node(`n${index}`)))).toBe(false);
});

test('pairs that are given crosswise are drawn without a crossing', () => {
  const found = byId([node('r'), node('a', 'r'), node('b', 'r'), node('c', 'b'), node('d', 'a'), node('e', 'c', 'd')]);
  const isAbove = (one: string, other: string) => found.get(one)!.y < found.get(other)!.y;
  expect(isAbove('a', 'b')).toBe(isAbove('d', 'c'));
});

test('a chain is a straight line', () => {
  const { nodes } = layOut([node('a'), node('b', 'a'), node('c', 'b')]);
  expect(new Set(nodes.map((each) => Math.round(each.y))).size).toBe(1);
});

test('edges begin and end at their nodes', () => {
  const nodes = makeGraph(50, 2);
  const { nodes: placed, edges } = layOut(nodes);
  const found = new Map(placed.map((each) => [each.id, each]));
  for (const { from, to, points } of edges) {
    const [begin, end] = [found.get(from)!, found.get(to)!];
    expect(points[0]![0]).toBeCloseTo(begin.x + SIZES.nodeWidth);
    expect(points[0]![1]).toBeCloseTo(begin.y + SIZES.nodeHeight / 2);
    expect(points.at(-1)![0]).toBeCloseTo(end.x);
    expect(points.at(-1)![1]).toBeCloseTo(end.y + SIZES.nodeHeight / 2);
  }
});

test('many nodes without dependencies become a block, not a column', () => {
  const { width, height } = layOut(Array.from({ length: 500 }, (_, index) => node(`n${index}`)));
  expect(width / height).toBeGreaterThan(0.8);
  expect(width / height).toBeLessThan(3);
});

test('an empty graph has no size', () => {
  expect(layOut([])).toMatchObject({ nodes: [], edges: [], height: 0 });
});

test('500 nodes are laid out while nobody notices', () => {
  const begin = performance.now();
  layOut(makeGraph(500, 1.5));
  expect(performance.now() - begin).toBeLessThan(2000);
});

test('a graph in which everything depends on everything before is laid out, too', () => {
  const names = Array.from({ length: 100 }, (_, index) => `n${index}`);
  expect(layOut(names.map((each, index) => node(each, ...names.slice(0, index)))).edges.length).toBe((100 * 99) / 2);
});

test('what an unhealthy node touches is what it needs and what needs it, not their neighbors', () => {
  const nodes = [node('a'), node('b', 'a'), node('c', 'b'), node('d', 'a'), node('e')];
  expect([...findTouched(nodes, ['b'])].sort()).toEqual(['a', 'b', 'c']);
});
