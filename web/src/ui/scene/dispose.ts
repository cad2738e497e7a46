import type { BufferGeometry, Material, Object3D } from 'three';

type Drawn = Object3D & { geometry?: BufferGeometry; material?: Material | Material[] };

/** Frees what an object and its children hold on the graphics card. */
export function disposeAll(object: Object3D, forget: (material: Material) => void): void {
  object.traverse((each: Drawn) => {
    each.geometry?.dispose();
    for (const material of [each.material ?? []].flat()) {
      material.dispose();
      forget(material);
    }
  });
}
