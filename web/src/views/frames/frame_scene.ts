/** The frames of a machine as a scene: axes with names, bodies, and lines from parents to children. */

import { Box3, BufferGeometry, Float32BufferAttribute, Group, LineBasicMaterial, LineSegments, type Object3D } from 'three';
import { WORLD, type Frame } from './frame_tree';
import type { PointCloud } from '../../lib/pcd';
import { describeShape } from '../../lib/shape';
import { shorten } from '../../lib/text';
import { applyPose, chainObject, cloudObject, placeChain, shapeObject } from '../../ui/scene/bodies';
import type { Space } from '../../ui/scene/space';

interface Shown {
  readonly group: Group;
  readonly marker: Group;
  readonly label: HTMLElement | null;
  readonly bodies: readonly Object3D[];
  readonly chain: Group | null;
}

const MAX_LABELS = 200;
const CHOSEN_SIZE = 1.8;
const BODY = '--removed';
const MOVING_BODY = '--series-5';
const CHOSEN_BODY = '--accent';

export class FrameScene {
  #shown = new Map<string, Shown>();
  #clouds = new Map<string, Object3D>();
  #ties: LineSegments<BufferGeometry, LineBasicMaterial>;
  #structure = '';
  #poses = '';
  #chosen = '';

  constructor(readonly space: Space) {
    this.#ties = new LineSegments(new BufferGeometry(), new LineBasicMaterial());
    this.#ties.frustumCulled = false;
    this.#ties.raycast = () => {};
    space.paint(this.#ties.material, '--line-strong');
    space.content.add(this.#ties);
    space.bounds = () => this.#bounds();
  }

  /** Draws only if a frame, a pose or the choice is another one. */
  update(frames: readonly Frame[], chosen: string): void {
    const structure = JSON.stringify(frames.map(describe));
    const poses = JSON.stringify(frames.map((each) => each.world));
    const isNew = structure !== this.#structure;
    if (isNew) this.#build(frames);
    else if (poses === this.#poses && chosen === this.#chosen) return;
    [this.#structure, this.#poses] = [structure, poses];
    this.#place(frames);
    this.#choose(chosen);
    // Also when the bodies of an arm arrive after its frame.
    if (isNew) this.space.fit();
    this.space.invalidate();
  }

  /** Shows the points that a camera sees, at the frame of the camera; null: no more. */
  setCloud(frame: string, cloud: PointCloud | null): void {
    const old = this.#clouds.get(frame);
    if (old !== undefined) this.space.remove(old);
    this.#clouds.delete(frame);
    const group = this.#shown.get(frame)?.group;
    if (cloud === null || group === undefined) return;
    const object = cloudObject(this.space, cloud);
    this.#clouds.set(frame, object);
    group.add(object);
    this.space.invalidate();
  }

  /** The frame that is seen at a place, if any. */
  pick(x: number, y: number): string | null {
    for (const seen of this.space.pick(x, y)) {
      for (let object: Object3D | null = seen; object !== null; object = object.parent) {
        if (typeof object.userData.frame === 'string') return object.userData.frame;
      }
    }
    return null;
  }

  #build(frames: readonly Frame[]): void {
    for (const [name, cloud] of this.#clouds) {
      cloud.removeFromParent();
      if (!frames.some((each) => each.name === name)) this.setCloud(name, null);
    }
    for (const { group } of this.#shown.values()) this.space.remove(group);
    this.#shown.clear();
    this.#chosen = '';
    for (const frame of frames) this.#add(frame);
    for (const [name, cloud] of this.#clouds) this.#shown.get(name)?.group.add(cloud);
  }

  #add(frame: Frame): void {
    const group = new Group();
    group.userData.frame = frame.name;
    this.space.content.add(group);
    const marker = this.space.addMarker(group);
    const bodies: Object3D[] = [];
    if (frame.shape !== null) bodies.push(shapeObject(this.space, frame.shape, BODY));
    const chain = frame.elements.length > 0 ? chainObject(this.space, frame.elements, MOVING_BODY) : null;
    if (chain !== null) chain.userData.frame = frame.name.replace(/_origin$/, '');
    for (const body of chain === null ? bodies : [...bodies, chain]) group.add(body);
    const isNamed = this.#shown.size < MAX_LABELS;
    const label = isNamed ? this.space.addLabel(group, shorten(frame.name, 60)) : null;
    if (frame.name === WORLD) {
      marker.userData.size = 1.4;
      for (const [index, axis] of ['x', 'y', 'z'].entries()) {
        const end = new Group();
        end.position.setComponent(index, 1.1);
        marker.add(end);
        this.space.addLabel(end, axis, 'axis');
      }
    }
    this.#shown.set(frame.name, { group, marker, label, bodies, chain });
  }

  #place(frames: readonly Frame[]): void {
    const ties: number[] = [];
    for (const frame of frames) {
      const shown = this.#shown.get(frame.name);
      if (shown === undefined) continue;
      shown.group.visible = frame.world !== null;
      if (frame.world === null) continue;
      applyPose(shown.group, frame.world);
      if (shown.chain !== null) placeChain(shown.chain, frame.elements);
      const parent = this.#shown.get(frame.parent)?.group;
      if (parent?.visible && !frame.moves) ties.push(...parent.position, ...shown.group.position);
    }
    this.#ties.geometry.dispose();
    this.#ties.geometry = new BufferGeometry().setAttribute('position', new Float32BufferAttribute(ties, 3));
  }

  #choose(chosen: string): void {
    this.#emphasize(this.#chosen, false);
    this.#emphasize(chosen, true);
    this.#chosen = chosen;
  }

  #emphasize(name: string, chosen: boolean): void {
    const shown = this.#shown.get(name);
    if (shown === undefined) return;
    shown.marker.userData.size = chosen ? CHOSEN_SIZE : name === WORLD ? 1.4 : 1;
    shown.label?.classList.toggle('chosen', chosen);
    for (const body of shown.bodies) this.#paint(body, chosen ? CHOSEN_BODY : BODY);
    const chain = this.#shown.get(`${name}_origin`)?.chain;
    if (chain) this.#paint(chain, chosen ? CHOSEN_BODY : MOVING_BODY);
  }

  #paint(body: Object3D, token: string): void {
    body.traverse((each) => {
      if ('material' in each) this.space.paint(each.material as LineBasicMaterial, token);
    });
  }

  /** Axes are as large as the picture wants, so they do not count. */
  #bounds(): Box3 {
    this.space.content.updateMatrixWorld(true);
    const box = new Box3();
    for (const { group, bodies, chain } of this.#shown.values()) {
      if (!group.visible) continue;
      box.expandByPoint(group.position);
      for (const body of bodies) box.expandByObject(body);
      if (chain !== null) box.expandByObject(chain);
    }
    for (const cloud of this.#clouds.values()) box.expandByObject(cloud);
    return box;
  }
}

function describe(frame: Frame): unknown[] {
  const shape = frame.shape === null ? '' : describeShape(frame.shape) + JSON.stringify(frame.shape.center);
  return [frame.name, frame.parent, shape, frame.elements.map((each) => each.element)];
}
