// Watches a camera, connects again when the connection is lost, and prints the time of each frame
// as JSON. Run as `node outage.mjs URL CAMERA`; it ends with its standard input.
import { withPage } from "./browser.mjs";

const [url, camera] = process.argv.slice(2);

async function watch({ url, camera }) {
  const { sdk } = globalThis.machine;
  const { host } = new URL(url);
  const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
  const report = (event) => console.log(JSON.stringify(event));
  const video = document.createElement("video");
  Object.assign(video, { muted: true, autoplay: true, width: 320 });
  document.body.replaceChildren(video);
  const onFrame = () => {
    report({ frame: Date.now() / 1000 });
    video.requestVideoFrameCallback(onFrame);
  };
  video.requestVideoFrameCallback(onFrame);
  for (;;) {
    const robot = new sdk.RobotClient();
    try {
      await robot.dial({ host, signalingAddress: url, noReconnect: true, iceServers: [], dialTimeout: 2000 });
      video.srcObject = await new sdk.StreamClient(robot).getStream(camera);
      // The SDK closes a connection that is lost; there is no event for that.
      while (!["failed", "closed"].includes(robot.peerConnection?.connectionState ?? "closed")) await sleep(200);
      report({ lost: Date.now() / 1000 });
    } catch (error) {
      report({ error: String(error) });
    }
    robot.disconnect().catch(() => {});
    await sleep(500);
  }
}

await withPage(`${url}/status.json`, async (page) => {
  page.on("console", (message) => message.text().startsWith("{") && console.log(message.text()));
  page.evaluate(watch, { url, camera }).catch(() => {});
  await new Promise((resolve) => process.stdin.resume().on("end", resolve));
});
