// Makes one call for each rule of data channels. Run as `node frames.mjs URL`.
import { withPage } from "./browser.mjs";

const [url] = process.argv.slice(2);

async function drive({ url }) {
  const { sdk } = globalThis.machine;
  const { host } = new URL(url);
  const robot = new sdk.RobotClient();
  await robot.dial({ host, signalingAddress: url, noReconnect: true, iceServers: [] });
  const sensor = new sdk.SensorClient(robot, "sensor");
  await sensor.getReadings();
  try {
    await new sdk.SensorClient(robot, "süß\n").getReadings();
  } catch {
    // It does not exist.
  }
  await robot.getOperations();
  const microphone = new sdk.AudioInClient(robot, "microphone");
  for await (const _ of microphone.getAudio("pcm16", 0.1, 0n));
  const speaker = new sdk.AudioOutClient(robot, "speaker");
  await speaker.play(new Uint8Array(20000), { codec: "pcm16", sampleRateHz: 384000, numChannels: 2 });
  await new Promise((resolve) => setTimeout(resolve, 500));
  await robot.disconnect();
}

// Not the front page, which reloads itself.
await withPage(`${url}/status.json`, (page) => page.evaluate(drive, { url }));
console.log("{}");
