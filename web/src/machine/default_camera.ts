/** Which camera a vision service looks at unless it is told another one. */

import type { Resource } from './status';

const CAMERA = 'rdk:component:camera';
const VISION = 'rdk:service:vision';

/** The camera that the configuration of a vision service names; undefined if it names none. */
export function findDefaultCamera(service: Resource | undefined, resources: readonly Resource[]): Resource | undefined {
  return resources.find((each) => each.api === CAMERA && service?.depends_on.includes(each.fullName));
}

/** The vision service whose configuration names this camera; undefined if none does. */
export function findServiceOfCamera(camera: Resource | undefined, resources: readonly Resource[]): Resource | undefined {
  return camera && resources.find((each) => each.api === VISION && findDefaultCamera(each, resources) === camera);
}
