// Watches cameras over WebRTC for benchmarks.video. Run as `node video.mjs URL`.
// Reads one command per line, as JSON: [NAME, ARGUMENT]. Prints its result as JSON.
import { createInterface } from "node:readline";
import { withPage } from "../../tests/browser/browser.mjs";

const [url] = process.argv.slice(2);

// Runs in the page: adds the commands to it.
function prepare(url) {
  const BITS = 20;
  const { sdk } = globalThis.machine;
  const { host } = new URL(url);
  const viewers = [];
  document.body.innerHTML = "";
  const nextFrame = (video) =>
    new Promise((resolve) => video.requestVideoFrameCallback((now, frame) => resolve({ now, frame })));

  // Returns the time in the picture, or undefined if it cannot be read.
  const canvas = new OffscreenCanvas(BITS, 2);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  function readTime(video) {
    const square = video.videoWidth / BITS;
    context.drawImage(video, 0, 0, video.videoWidth, 2 * square, 0, 0, BITS, 2);
    const { data } = context.getImageData(0, 0, BITS, 2);
    let time = 0;
    for (let bit = 0; bit < BITS; bit++) {
      const [isSet, isInverted] = [data[4 * bit] > 127, data[4 * (BITS + bit)] > 127];
      if (isSet === isInverted) return undefined;
      time = 2 * time + (isSet ? 1 : 0);
    }
    return time;
  }

  // Connects as another client, and returns the seconds from AddStream to the first frame.
  async function add(name) {
    const robot = new sdk.RobotClient();
    await robot.dial({ host, signalingAddress: url, noReconnect: true, iceServers: [] });
    const streams = new sdk.StreamClient(robot);
    const begin = performance.now();
    const video = document.createElement("video");
    // Small, because without a graphics card it takes long to draw.
    Object.assign(video, { srcObject: await streams.getStream(name), muted: true, autoplay: true, width: 320 });
    document.body.append(video);
    await nextFrame(video);
    viewers.push({ name, robot, streams, video });
    return (performance.now() - begin) / 1000;
  }

  async function remove() {
    const { robot, video } = viewers.pop();
    video.remove();
    await robot.disconnect();
  }

  // Sends the last video in another size; null for the size of the camera.
  async function resize(size) {
    const { name, streams, video } = viewers.at(-1);
    await (size ? streams.setOptions(name, ...size) : streams.resetOptions(name));
    await nextFrame(video);
  }

  // Watches the first video, and returns the milliseconds at which frames were presented, and their
  // delays since they were drawn; null for those whose time cannot be read.
  async function record(seconds) {
    const { video, robot } = viewers[0];
    const found = { times: [], delays: [], codes: [] };
    const readStats = async () => [...(await robot.peerConnection.getStats()).values()];
    const isVideo = (each) => each.type === "inbound-rtp";
    const before = (await readStats()).find(isVideo);
    const presentedBefore = (await nextFrame(video)).frame.presentedFrames;
    const end = performance.now() + seconds * 1000;
    while (performance.now() < end) {
      const { frame } = await nextFrame(video);
      const code = readTime(video);
      const now = Date.now() % (1 << BITS);
      found.times.push(frame.presentationTime);
      found.codes.push(code ?? null);
      found.delays.push(code === undefined ? null : (now - code + (1 << BITS)) % (1 << BITS));
      found.presented = frame.presentedFrames - presentedBefore;
    }
    const stats = await readStats();
    found.stats = stats.find(isVideo);
    found.bitrate = ((found.stats.bytesReceived - before.bytesReceived) * 8) / seconds;
    found.codec = stats.find((each) => each.id === found.stats.codecId)?.mimeType;
    found.size = [video.videoWidth, video.videoHeight];
    return found;
  }

  globalThis.commands = { add, remove, resize, record };
}

// Not the front page, which reloads itself.
await withPage(`${url}/status.json`, async (page) => {
  await page.evaluate(prepare, url);
  console.log("null");
  for await (const line of createInterface({ input: process.stdin })) {
    const run = ([name, argument]) => globalThis.commands[name](argument);
    const result = await page.evaluate(run, JSON.parse(line));
    console.log(JSON.stringify(result ?? null));
  }
});
