import { Quaternion, Vector3 } from 'three';

/** From a camera's frame (y down, z forward) to a scene's (z up), so that forward is along y. */
export const CAMERA_TO_SCENE = new Quaternion().setFromAxisAngle(new Vector3(1, 0, 0), -Math.PI / 2);
