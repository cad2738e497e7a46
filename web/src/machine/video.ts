/** Video of cameras over a WebRTC connection, shared by everything on the page that shows it. */

import { StreamClient, type RobotClient } from '@viamrobotics/sdk';
import { withDeadline } from '../lib/deadline';

const TIMEOUT = 8000;
/** Milliseconds after the last viewer has left until the machine stops sending. */
const LINGER = 1000;

export interface Watch {
  readonly stream: Promise<MediaStream>;
  close(): void;
}

/** What the SDK's client of streams does for us. */
export interface Streams {
  add(camera: string): Promise<void>;
  remove(camera: string): Promise<void>;
  on(type: 'track', listen: (event: unknown) => void): void;
  off(type: 'track', listen: (event: unknown) => void): void;
}

const VIDEOS = new WeakMap<RobotClient, Videos>();

/** Watches a camera until `close`. The machine sends a video once, to however many watch it here. */
export function watchVideo(robot: RobotClient, camera: string): Watch {
  let videos = VIDEOS.get(robot);
  if (videos === undefined) VIDEOS.set(robot, (videos = new Videos(new StreamClient(robot))));
  return videos.watch(camera);
}

interface Video {
  viewers: number;
  readonly stream: Promise<MediaStream>;
}

export class Videos {
  readonly #streams: Streams;
  readonly #videos = new Map<string, Video>();
  /** Removals that have not ended: a camera can be added again only after that. */
  readonly #removals = new Map<string, Promise<void>>();

  constructor(streams: Streams) {
    this.#streams = streams;
  }

  watch(camera: string): Watch {
    const video = this.#videos.get(camera) ?? this.#begin(camera);
    video.viewers += 1;
    let closed = false;
    const close = () => {
      if (closed) return;
      closed = true;
      video.viewers -= 1;
      setTimeout(() => this.#removeUnwatched(camera, video), LINGER);
    };
    return { stream: video.stream, close };
  }

  #begin(camera: string): Video {
    const video: Video = { viewers: 0, stream: this.#add(camera) };
    this.#videos.set(camera, video);
    // The next viewer tries again.
    video.stream.catch(() => this.#forget(camera, video));
    return video;
  }

  async #add(camera: string): Promise<MediaStream> {
    await this.#removals.get(camera);
    // Not `getStream`: if the camera cannot be added, its timer fails with nobody to catch the error.
    const leave = new AbortController();
    const stream = this.#waitForTrack(camera, leave.signal);
    const added = this.#streams.add(camera);
    try {
      return (await Promise.all([stream, added]))[0];
    } catch (error) {
      this.#remove(camera, added);
      throw error;
    } finally {
      leave.abort();
    }
  }

  #waitForTrack(camera: string, signal: AbortSignal): Promise<MediaStream> {
    return new Promise((resolve, reject) => {
      const listen = (event: unknown) => {
        const stream = (event as RTCTrackEvent).streams.find((each) => each.id === camera);
        if (stream) resolve(stream);
      };
      this.#streams.on('track', listen);
      const timer = setTimeout(() => reject(new Error('the machine sent no video in time')), TIMEOUT);
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        this.#streams.off('track', listen);
        reject(new Error('the video was not wanted any more'));
      });
    });
  }

  #removeUnwatched(camera: string, video: Video): void {
    if (video.viewers > 0 || !this.#forget(camera, video)) return;
    this.#remove(camera, video.stream);
  }

  /** Returns whether it was the video of this camera. */
  #forget(camera: string, video: Video): boolean {
    return this.#videos.get(camera) === video && this.#videos.delete(camera);
  }

  /** Removes a camera from what the machine sends, once it was added; if it could not be added, nothing is to be removed. */
  #remove(camera: string, added: Promise<unknown>): void {
    const removal = withDeadline(
      added.then(() => this.#streams.remove(camera)),
      TIMEOUT,
    )
      // The connection is lost, and the video with it.
      .catch(() => undefined)
      .then(() => {
        if (this.#removals.get(camera) === removal) this.#removals.delete(camera);
      });
    this.#removals.set(camera, removal);
  }
}
