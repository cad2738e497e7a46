// Makes calls over WebRTC, and prints what happened as JSON. The SDK has neither client streams nor
// deadlines over WebRTC, and never cancels a call.
// Run as `node calls.mjs PAGE HOST OPENS`: the page is one of the signaling server.
import { withPage } from "./browser.mjs";

const [url, host, opens] = process.argv.slice(2);

async function drive({ url, host, opens }) {
  const { sdk } = globalThis.machine;
  const signalingAddress = new URL(url).origin;
  const times = [];
  let robot;
  for (let number = 0; number < opens; number++) {
    if (robot) await robot.disconnect();
    const begin = performance.now();
    robot = new sdk.RobotClient();
    await robot.dial({ host, signalingAddress, noReconnect: true, iceServers: [] });
    times.push((performance.now() - begin) / 1000);
  }
  const readings = await new sdk.SensorClient(robot, "sensor").getReadings();
  let chunks = 0;
  for await (const _ of new sdk.AudioInClient(robot, "microphone").getAudio("pcm16", 0.2, 0n)) chunks++;
  const sound = new Uint8Array(5_000_000);
  const info = { codec: "pcm16", sampleRateHz: 384000, numChannels: 2 };
  await new sdk.AudioOutClient(robot, "speaker").play(sound, info);
  const cloud = await new sdk.CameraClient(robot, "camera").getPointCloud();
  const stats = [...(await robot.peerConnection.getStats()).values()];
  const pair = stats.find((each) => each.type === "candidate-pair" && each.nominated && each.state === "succeeded");
  const kind = (id) => stats.find((each) => each.id === id)?.candidateType;
  return {
    "seconds to connect": times,
    candidates: `${kind(pair?.localCandidateId)} ${kind(pair?.remoteCandidateId)}`,
    connection: robot.peerConnection.connectionState,
    unary: readings,
    "server stream": chunks,
    "megabytes up": sound.length / 1e6,
    "megabytes down": cloud.length / 1e6,
  };
}

const found = await withPage(url, (page) => page.evaluate(drive, { url, host, opens: Number(opens) }));
console.log(JSON.stringify(found));
