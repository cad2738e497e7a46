// Watches cameras over WebRTC, and prints what a person would see as JSON.
// Run as `node video.mjs URL SECONDS CAMERA... [--picture FILE]`.
import { withPage } from "./browser.mjs";

const given = process.argv.slice(2);
const at = given.indexOf("--picture");
const picture = at < 0 ? undefined : given.splice(at, 2)[1];
const [url, seconds, ...cameras] = given;

async function watch({ url, seconds, cameras }) {
  const { sdk } = globalThis.machine;
  const { host } = new URL(url);
  const robot = new sdk.RobotClient();
  await robot.dial({ host, signalingAddress: url, noReconnect: true, iceServers: [] });
  const streams = new sdk.StreamClient(robot);
  document.body.innerHTML = '<main style="display: inline-flex; gap: 12px; padding: 12px; background: #20242a"></main>';
  const main = document.querySelector("main");
  const show = (name, stream) => {
    const figure = document.createElement("figure");
    figure.style.cssText = "margin: 0; color: #dde; font: 16px sans-serif";
    const video = document.createElement("video");
    Object.assign(video, { srcObject: stream, muted: true, autoplay: true });
    figure.append(video, document.createElement("br"), name);
    main.append(figure);
    return video;
  };
  const found = {};
  await Promise.all(
    cameras.map(async (name) => {
      const begin = performance.now();
      const video = show(name, await streams.getStream(name));
      await new Promise((resolve) => video.requestVideoFrameCallback(resolve));
      const first = performance.now() - begin;
      const before = video.getVideoPlaybackQuality().totalVideoFrames;
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
      const quality = video.getVideoPlaybackQuality();
      const canvas = document.createElement("canvas");
      canvas.width = video.videoWidth;
      canvas.height = video.videoHeight;
      const context = canvas.getContext("2d");
      context.drawImage(video, 0, 0);
      const pixel = (x, y) => [...context.getImageData(x * canvas.width, y * canvas.height, 1, 1).data];
      const stats = [...(await robot.peerConnection.getStats()).values()];
      const inbound = stats.find((each) => each.type === "inbound-rtp" && each.frameWidth === video.videoWidth);
      const options = await streams.getOptions(name);
      found[name] = {
        sizes: options.map((each) => [each.width, each.height]),
        "first frame": first / 1000,
        size: [video.videoWidth, video.videoHeight],
        frames: quality.totalVideoFrames - before,
        dropped: quality.droppedVideoFrames,
        codec: stats.find((each) => each.id === inbound?.codecId)?.mimeType,
        corners: [pixel(0.1, 0.1), pixel(0.9, 0.9)],
      };
    }),
  );
  globalThis.watching = { robot, streams };
  return found;
}

async function stop(cameras) {
  const { robot, streams } = globalThis.watching;
  for (const name of cameras) await streams.remove(name);
  const live = () =>
    robot.peerConnection.getReceivers().filter((each) => each.track.readyState === "live" && !each.track.muted);
  const end = performance.now() + 5000;
  while (live().length && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 50));
  return live().length;
}

// Adds the cameras again in the other order, and returns their sizes.
async function watchAgain(cameras) {
  const { streams } = globalThis.watching;
  const sizes = {};
  for (const name of cameras.toReversed()) {
    const video = document.createElement("video");
    Object.assign(video, { srcObject: await streams.getStream(name), muted: true, autoplay: true });
    document.body.append(video);
    await new Promise((resolve) => video.requestVideoFrameCallback(resolve));
    sizes[name] = [video.videoWidth, video.videoHeight];
  }
  return sizes;
}

// Not the front page, which reloads itself.
const found = await withPage(`${url}/status.json`, async (page) => {
  const seen = await page.evaluate(watch, { url, seconds: Number(seconds), cameras });
  if (picture) await page.locator("main").screenshot({ path: picture, type: "jpeg", quality: 85 });
  seen.again = [];
  for (let round = 0; round < 3; round++) {
    seen.left = await page.evaluate(stop, cameras);
    seen.again.push(await page.evaluate(watchAgain, cameras));
  }
  return seen;
});
console.log(JSON.stringify(found));
