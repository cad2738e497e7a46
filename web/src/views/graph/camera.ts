/** Which part of a drawing is seen: a point of the drawing times `scale`, plus `x` and `y`, is a point of the view. */
export interface Camera {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

const MIN_SCALE = 0.05;
const MAX_SCALE = 3;
const MAX_FIT = 1.1;
/** The smallest scale at which a drawing is fit into the view; below it nothing can be read. */
const MIN_FIT = 0.3;
const MARGIN = 24;

/** Shows all of the drawing, or its beginning if it is too large to be read. */
export function fit(drawing: Size, view: Size, least = MIN_FIT): Camera {
  const [width, height] = [view.width - 2 * MARGIN, view.height - 2 * MARGIN];
  const whole = Math.min(width / Math.max(1, drawing.width), height / Math.max(1, drawing.height), MAX_FIT);
  const scale = Math.max(whole, least, MIN_SCALE);
  return {
    scale,
    x: Math.max(MARGIN, (view.width - drawing.width * scale) / 2),
    y: Math.max(MARGIN, (view.height - drawing.height * scale) / 2),
  };
}

/** Zooms so that the point of the view stays where it is. */
export function zoom(camera: Camera, factor: number, x: number, y: number): Camera {
  const scale = Math.max(MIN_SCALE, Math.min(MAX_SCALE, camera.scale * factor));
  const change = scale / camera.scale;
  return { scale, x: x - (x - camera.x) * change, y: y - (y - camera.y) * change };
}

/** Moves the view, but never so far that nothing of the drawing can be seen. */
export function pan(camera: Camera, dx: number, dy: number, drawing: Size, view: Size): Camera {
  const keep = 2 * MARGIN;
  return {
    scale: camera.scale,
    x: Math.max(keep - drawing.width * camera.scale, Math.min(view.width - keep, camera.x + dx)),
    y: Math.max(keep - drawing.height * camera.scale, Math.min(view.height - keep, camera.y + dy)),
  };
}

/** Moves the view if the rectangle is not inside, so that it is in the middle. */
export function reveal(camera: Camera, left: number, top: number, size: Size, view: Size): Camera {
  const { scale } = camera;
  const [x, y] = [left * scale + camera.x, top * scale + camera.y];
  const isInside = x >= 0 && y >= 0 && x + size.width * scale <= view.width && y + size.height * scale <= view.height;
  if (isInside) return camera;
  return {
    scale,
    x: view.width / 2 - (left + size.width / 2) * scale,
    y: view.height / 2 - (top + size.height / 2) * scale,
  };
}
