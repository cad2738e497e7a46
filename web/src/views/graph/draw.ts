import { shorten } from '../../lib/text';
import type { Camera, Size } from './camera';
import { MISSING, type GraphItem } from './items';
import { SIZES, type Edge, type GraphLayout, type Placed } from './layout';
import { tokenColor } from '../../lib/token_color';

const TOKENS = {
  surface: '--surface',
  raised: '--raised',
  line: '--line',
  strong: '--line-strong',
  text: '--text',
  soft: '--text-soft',
  accent: '--accent',
  ready: '--ready',
  configuring: '--configuring',
  unhealthy: '--unhealthy',
  tint: '--unhealthy-tint',
  removed: '--removed',
} as const;

export type Colors = Readonly<Record<keyof typeof TOKENS, string>>;

export interface Scene {
  readonly layout: GraphLayout;
  readonly items: ReadonlyMap<string, GraphItem>;
  readonly camera: Camera;
  readonly view: Size;
  /** The node that is pointed at, and what it touches. */
  readonly current: string;
  readonly touched: ReadonlySet<string>;
  /** From 0 to 1, for what is being configured. */
  readonly pulse: number;
  readonly colors: Colors;
}

const READABLE = 0.3;
const DETAILED = 0.55;
const PADDING = 12;
const MARK = 22;
const RADIUS = 6;
const DIMMED = 0.35;
const MAX_LABELS = 4000;
const labels = new Map<string, string>();

export function readColors(element: HTMLElement): Colors {
  const values = Object.entries(TOKENS).map(([name, token]) => [name, tokenColor(element, token)]);
  return Object.fromEntries(values) as Colors;
}

/** The colors while the states may be outdated. */
export function fade(colors: Colors): Colors {
  const { removed, surface } = colors;
  return { ...colors, ready: removed, unhealthy: removed, configuring: removed, tint: surface };
}

export function drawScene(context: CanvasRenderingContext2D, scene: Scene): void {
  const { camera, view } = scene;
  context.clearRect(0, 0, view.width, view.height);
  context.save();
  context.translate(camera.x, camera.y);
  context.scale(camera.scale, camera.scale);
  const seen = {
    left: -camera.x / camera.scale,
    top: -camera.y / camera.scale,
    right: (view.width - camera.x) / camera.scale,
    bottom: (view.height - camera.y) / camera.scale,
  };
  drawEdges(context, scene, seen);
  for (const node of scene.layout.nodes) {
    const isOutside =
      node.x > seen.right || node.x + SIZES.nodeWidth < seen.left || node.y > seen.bottom || node.y + SIZES.nodeHeight < seen.top;
    if (!isOutside) drawNode(context, scene, node);
  }
  context.restore();
}

interface Bounds {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

function drawEdges(context: CanvasRenderingContext2D, scene: Scene, seen: Bounds): void {
  const { colors, current } = scene;
  const isMarked = (edge: Edge) => current !== '' && (edge.from === current || edge.to === current);
  const isRelated = (edge: Edge) => current === '' || (scene.touched.has(edge.from) && scene.touched.has(edge.to));
  const visible = scene.layout.edges.filter((edge) => isNear(edge, seen));
  const groups = [
    { edges: visible.filter((edge) => !isRelated(edge)), color: colors.strong, alpha: DIMMED / 2, width: 1 },
    {
      edges: visible.filter((edge) => isRelated(edge) && !isMarked(edge)),
      color: colors.strong,
      alpha: 0.7,
      width: 1.2,
    },
    { edges: visible.filter(isMarked), color: colors.accent, alpha: 1, width: 2 },
  ];
  for (const { edges, color, alpha, width } of groups) {
    context.globalAlpha = alpha;
    context.strokeStyle = color;
    context.lineWidth = Math.max(width, 0.6 / scene.camera.scale);
    context.beginPath();
    for (const { points } of edges) trace(context, points);
    context.stroke();
  }
  context.globalAlpha = 1;
}

function isNear(edge: Edge, seen: Bounds): boolean {
  let [top, bottom, left, right] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const [x, y] of edge.points) {
    [left, right] = [Math.min(left, x), Math.max(right, x)];
    [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
  }
  return left <= seen.right && right >= seen.left && top <= seen.bottom && bottom >= seen.top;
}

function trace(context: CanvasRenderingContext2D, points: Edge['points']): void {
  let [fromX, fromY] = points[0]!;
  context.moveTo(fromX, fromY);
  for (const [x, y] of points.slice(1)) {
    const bend = x > fromX ? (x - fromX) / 2 : SIZES.layerGap;
    if (y === fromY && x > fromX) context.lineTo(x, y);
    else context.bezierCurveTo(fromX + bend, fromY, x - bend, y, x, y);
    [fromX, fromY] = [x, y];
  }
}

function drawNode(context: CanvasRenderingContext2D, scene: Scene, node: Placed): void {
  const item = scene.items.get(node.id);
  if (item === undefined) return;
  const { colors, camera } = scene;
  const color = colorOf(item.condition, colors);
  const isCurrent = node.id === scene.current;
  const isBad = item.condition === 'unhealthy' || item.condition === MISSING;
  context.globalAlpha = scene.current === '' || scene.touched.has(node.id) ? 1 : DIMMED;
  context.beginPath();
  context.roundRect(node.x, node.y, SIZES.nodeWidth, SIZES.nodeHeight, RADIUS);
  context.fillStyle = isBad ? colors.tint : colors.surface;
  context.fill();
  context.strokeStyle = isCurrent ? colors.accent : item.condition === 'ready' ? colors.line : color;
  context.lineWidth = isCurrent ? 2.5 : 1.2;
  if (item.condition === MISSING) context.setLineDash([5, 4]);
  context.stroke();
  context.setLineDash([]);
  if (camera.scale >= READABLE) {
    drawMark(context, item.condition, node.x + PADDING + 5, node.y + SIZES.nodeHeight / 2, color, scene.pulse);
    drawTexts(context, item, node, scene);
  } else {
    // Too small for a mark: the whole node has the color, and what is not ready more of it.
    context.globalAlpha *= item.condition === 'ready' ? 0.45 : 1;
    context.fillStyle = color;
    context.fill();
  }
  context.globalAlpha = 1;
}

function drawTexts(context: CanvasRenderingContext2D, item: GraphItem, node: Placed, scene: Scene): void {
  const width = SIZES.nodeWidth - PADDING - MARK - 6;
  const left = node.x + PADDING + MARK - 2;
  context.textBaseline = 'middle';
  if (scene.camera.scale < DETAILED) {
    context.font = '600 19px system-ui, sans-serif';
    context.fillStyle = scene.colors.text;
    context.fillText(fitLabel(context, item.name, width), left, node.y + SIZES.nodeHeight / 2 + 1);
    return;
  }
  context.font = '600 13px system-ui, sans-serif';
  context.fillStyle = scene.colors.text;
  context.fillText(fitLabel(context, item.name, width), left, node.y + 16);
  context.font = '12px system-ui, sans-serif';
  context.fillStyle = scene.colors.soft;
  const kind = item.condition === MISSING ? 'not configured' : item.subtype.replaceAll('_', ' ');
  const text = item.module ? `${kind} · ${item.module}` : kind;
  context.fillText(fitLabel(context, text, width), left, node.y + 32);
}

/** The text, cut so that it fits. */
function fitLabel(context: CanvasRenderingContext2D, text: string, width: number): string {
  const key = `${context.font}\n${text}`;
  const known = labels.get(key);
  if (known !== undefined) return known;
  let label = shorten(text, 60);
  if (context.measureText(label).width > width) {
    while (label.length > 1 && context.measureText(`${label}…`).width > width) label = label.slice(0, -1);
    label = `${label}…`;
  }
  if (labels.size >= MAX_LABELS) labels.clear();
  labels.set(key, label);
  return label;
}

function colorOf(condition: string, colors: Colors): string {
  if (condition === 'ready') return colors.ready;
  if (condition === 'unhealthy' || condition === MISSING) return colors.unhealthy;
  return condition === 'removing' ? colors.removed : colors.configuring;
}

/** The same shapes as `StateMark`: dot, triangle, dash and ring. */
function drawMark(context: CanvasRenderingContext2D, condition: string, x: number, y: number, color: string, pulse: number): void {
  context.fillStyle = context.strokeStyle = color;
  context.beginPath();
  if (condition === 'ready') {
    context.arc(x, y, 4.5, 0, 2 * Math.PI);
    context.fill();
  } else if (condition === 'unhealthy' || condition === MISSING) {
    context.moveTo(x, y - 5.5);
    context.lineTo(x + 6, y + 5);
    context.lineTo(x - 6, y + 5);
    context.closePath();
    context.fill();
  } else if (condition === 'removing') {
    context.fillRect(x - 5, y - 1.2, 10, 2.4);
  } else {
    context.lineWidth = 2;
    context.arc(x, y, 4 + 2.5 * pulse, 0, 2 * Math.PI);
    context.stroke();
  }
}
