/** A scene that is drawn when something in it changes, and only then. */

import {
  Box3,
  BufferGeometry,
  Color,
  ColorManagement,
  DirectionalLight,
  Float32BufferAttribute,
  Group,
  HemisphereLight,
  LinearSRGBColorSpace,
  LineBasicMaterial,
  LineSegments,
  PerspectiveCamera,
  Raycaster,
  Scene,
  Sphere,
  Vector2,
  Vector3,
  WebGLRenderer,
  type Material,
  type Object3D,
} from 'three';
import { addAxes } from './axes';
import { gridStep, Orbit, type Side } from './orbit';
import { disposeAll } from './dispose';
import { tokenColor } from '../../lib/token_color';

/** A name that floats beside an object. */
interface Label {
  readonly object: Object3D;
  readonly element: HTMLElement;
}

type Paintable = Material & { color: Color };

const FIELD_OF_VIEW = 45;
const GRID_LINES = 40;
const LETTER_WIDTH = 6.2;
const ROW_HEIGHT = 17;
const MAX_ROWS = 4;
/** Axes of frames are as large as this part of the picture's height, wherever they are. */
const MARKER_SIZE = 0.055;
const MAX_PIXEL_RATIO = 2;

export class Space {
  /** What is shown, in meters with z up. */
  readonly content = new Group();
  readonly orbit = new Orbit();
  /** What `fit` makes visible. */
  bounds: () => Box3 = () => new Box3().setFromObject(this.content);
  /** The height of the grid, in meters. */
  floor = 0;
  ongrid: (step: number) => void = () => {};
  ontheme: () => void = () => {};

  #renderer: WebGLRenderer;
  #scene = new Scene();
  #camera = new PerspectiveCamera(FIELD_OF_VIEW, 1, 0.01, 1000);
  #light = new DirectionalLight('white', 2);
  #grid = new LineSegments(new BufferGeometry(), new LineBasicMaterial({ transparent: true, opacity: 0.8 }));
  #gridKey = '';
  #labels = new Set<Label>();
  #markers = new Set<Object3D>();
  #painted = new Map<Paintable, string>();
  #palette = new Map<string, string>();
  #frame = 0;
  #width = 0;
  #height = 0;
  #disposed = false;

  /** `box` holds the canvas and the names. Throws if there is no WebGL. */
  constructor(
    readonly box: HTMLElement,
    readonly canvas: HTMLCanvasElement,
  ) {
    const context = canvas.getContext('webgl2', { antialias: true });
    if (context === null) throw new Error('this browser has no WebGL');
    // Colors come from the theme and the pictures, and are shown as they are.
    ColorManagement.enabled = false;
    this.#renderer = new WebGLRenderer({ canvas, context, antialias: true });
    this.#renderer.outputColorSpace = LinearSRGBColorSpace;
    this.#camera.up.set(0, 0, 1);
    this.#scene.add(new HemisphereLight('white', 'gray', 2), this.#light, this.#grid, this.content);
    this.paint(this.#grid.material, '--line');
    this.applyTheme();
    canvas.addEventListener('webglcontextrestored', () => this.invalidate());
  }

  /** Draws soon. */
  invalidate(): void {
    if (this.#frame === 0 && !this.#disposed) this.#frame = requestAnimationFrame(() => this.#draw());
  }

  resize(width: number, height: number): void {
    if (width === 0 || height === 0) return;
    [this.#width, this.#height] = [width, height];
    this.#renderer.setPixelRatio(Math.min(devicePixelRatio, MAX_PIXEL_RATIO));
    this.#renderer.setSize(width, height, false);
    this.#camera.aspect = width / height;
    this.#camera.updateProjectionMatrix();
    this.invalidate();
  }

  fit(): void {
    const box = this.bounds();
    const sphere = box.isEmpty() ? new Sphere(new Vector3(), 0.5) : box.getBoundingSphere(new Sphere());
    const vertical = (FIELD_OF_VIEW * Math.PI) / 180;
    const horizontal = 2 * Math.atan(Math.tan(vertical / 2) * this.#camera.aspect);
    this.orbit.fit(sphere.center.toArray(), Math.max(sphere.radius, 0.05), vertical, horizontal);
    this.invalidate();
  }

  look(side: Side): void {
    this.orbit.look(side);
    this.fit();
  }

  /** Gives a material the color of a token of the theme, whichever theme it is. */
  paint(material: Paintable, token: string): void {
    this.#painted.set(material, token);
    material.color.set(this.color(token));
  }

  /** A token of the theme as `rgb(…)`. */
  color(token: string): string {
    const known = this.#palette.get(token);
    if (known !== undefined) return known;
    const color = tokenColor(this.canvas, token);
    this.#palette.set(token, color);
    return color;
  }

  applyTheme(): void {
    this.#palette.clear();
    this.#renderer.setClearColor(this.color('--page'));
    for (const [material, token] of this.#painted) material.color.set(this.color(token));
    this.ontheme();
    this.invalidate();
  }

  /** Shows axes at the object that are as large near as far. */
  addMarker(object: Object3D): Group {
    const axes = addAxes(object, (material, token) => this.paint(material, token));
    this.#markers.add(axes);
    return axes;
  }

  addLabel(object: Object3D, text: string, className = ''): HTMLElement {
    const element = document.createElement('span');
    element.textContent = text;
    element.className = `label ${className}`;
    element.ariaHidden = 'true';
    this.box.append(element);
    this.#labels.add({ object, element });
    return element;
  }

  /** Takes an object from the scene, with all that belongs to it. */
  remove(object: Object3D): void {
    object.removeFromParent();
    object.traverse((each) => {
      this.#markers.delete(each);
      for (const label of this.#labels) if (label.object === each) this.#removeLabel(label);
    });
    disposeAll(object, (material) => this.#painted.delete(material as Paintable));
    this.invalidate();
  }

  /** What is seen at a place in the box, nearest first, in pixels from its top left corner. */
  pick(x: number, y: number): Object3D[] {
    if (this.#width === 0) return [];
    const raycaster = new Raycaster();
    raycaster.setFromCamera(new Vector2((x / this.#width) * 2 - 1, 1 - (y / this.#height) * 2), this.#camera);
    return raycaster.intersectObject(this.content, true).map((each) => each.object);
  }

  dispose(): void {
    this.#disposed = true;
    cancelAnimationFrame(this.#frame);
    for (const label of this.#labels) this.#removeLabel(label);
    disposeAll(this.#scene, () => {});
    this.#renderer.dispose();
    // A browser has few contexts: the next scene needs this one.
    this.#renderer.getContext().getExtension('WEBGL_lose_context')?.loseContext();
  }

  #draw(): void {
    this.#frame = 0;
    if (this.#width === 0) return;
    const { orbit } = this;
    this.#camera.position.set(...orbit.position);
    this.#camera.lookAt(...orbit.target);
    this.#camera.near = orbit.distance / 100;
    this.#camera.far = orbit.distance * 100;
    this.#camera.updateProjectionMatrix();
    this.#camera.updateMatrixWorld();
    this.#light.position.copy(this.#camera.position);
    this.#light.target.position.set(...orbit.target);
    this.#light.target.updateMatrixWorld();
    this.#drawGrid();
    this.#scene.updateMatrixWorld();
    this.#sizeMarkers();
    this.#renderer.render(this.#scene, this.#camera);
    this.#placeLabels();
  }

  #drawGrid(): void {
    const step = gridStep(this.orbit.distance);
    const [x, y] = [Math.round(this.orbit.target[0] / step) * step, Math.round(this.orbit.target[1] / step) * step];
    const key = `${step} ${x} ${y} ${this.floor}`;
    if (key === this.#gridKey) return;
    this.#gridKey = key;
    const half = (GRID_LINES / 2) * step;
    const points: number[] = [];
    for (let line = -half; line <= half + step / 2; line += step) {
      points.push(x + line, y - half, this.floor, x + line, y + half, this.floor);
      points.push(x - half, y + line, this.floor, x + half, y + line, this.floor);
    }
    this.#grid.geometry.dispose();
    this.#grid.geometry = new BufferGeometry().setAttribute('position', new Float32BufferAttribute(points, 3));
    this.ongrid(step);
  }

  #sizeMarkers(): void {
    const position = new Vector3();
    for (const marker of this.#markers) {
      const depth = marker.getWorldPosition(position).applyMatrix4(this.#camera.matrixWorldInverse).z;
      const size = -depth * MARKER_SIZE * (marker.userData.size ?? 1);
      marker.scale.setScalar(Math.max(size, 1e-6));
      marker.updateMatrixWorld(true);
    }
  }

  /** Puts names beside their objects, below each other where they would overlap. */
  #placeLabels(): void {
    const position = new Vector3();
    const taken: Rectangle[] = [];
    const [chosen, others] = [[] as Label[], [] as Label[]];
    for (const label of this.#labels) (label.element.classList.contains('chosen') ? chosen : others).push(label);
    for (const { object, element } of [...chosen, ...others]) {
      object.getWorldPosition(position).project(this.#camera);
      const isVisible = position.z < 1 && Math.abs(position.x) < 1 && Math.abs(position.y) < 1 && isShown(object);
      const [x, y] = [((position.x + 1) / 2) * this.#width, ((1 - position.y) / 2) * this.#height];
      const rows = element.classList.contains('axis') ? 0 : MAX_ROWS;
      const place = isVisible ? findRoom(x, y, element.textContent?.length ?? 0, rows, taken) : null;
      element.hidden = place === null;
      if (place === null) continue;
      if (rows > 0) taken.push(place);
      element.style.transform = `translate(${place.x.toFixed(1)}px, ${place.y.toFixed(1)}px)`;
    }
  }

  #removeLabel(label: Label): void {
    label.element.remove();
    this.#labels.delete(label);
  }
}

interface Rectangle {
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

/** A free place for a name at or below a point, or null if there is none nearby. Without rows, any place is free. */
function findRoom(x: number, y: number, letters: number, rows: number, taken: readonly Rectangle[]): Rectangle | null {
  const width = 8 + letters * LETTER_WIDTH;
  if (rows === 0) return { x, y, width };
  for (let row = 0; row < rows; row += 1) {
    const place = { x, y: y + row * ROW_HEIGHT, width };
    if (!taken.some((each) => overlap(each, place))) return place;
  }
  return null;
}

function overlap(one: Rectangle, other: Rectangle): boolean {
  return Math.abs(one.y - other.y) < ROW_HEIGHT && one.x < other.x + other.width && other.x < one.x + one.width;
}

function isShown(object: Object3D | null): boolean {
  return object === null || (object.visible && isShown(object.parent));
}
