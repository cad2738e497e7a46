import { CylinderGeometry, Group, Mesh, MeshBasicMaterial, type Object3D } from 'three';

/** x, y and z, as everywhere in robotics: red, green, blue. */
const AXIS_TOKENS = ['--unhealthy', '--ready', '--accent'] as const;

const THICKNESS = 0.028;

/** Three thin rods of length one. */
export function addAxes(parent: Object3D, paint: (material: MeshBasicMaterial, token: string) => void): Group {
  const axes = new Group();
  for (const [index, token] of AXIS_TOKENS.entries()) {
    const material = new MeshBasicMaterial();
    paint(material, token);
    const rod = new Mesh(new CylinderGeometry(THICKNESS, THICKNESS, 1, 8).translate(0, 0.5, 0), material);
    // A cylinder is along y.
    if (index === 0) rod.rotation.z = -Math.PI / 2;
    if (index === 2) rod.rotation.x = Math.PI / 2;
    axes.add(rod);
  }
  parent.add(axes);
  return axes;
}
