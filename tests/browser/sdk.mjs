// Calls every unary and server-streaming method of the SDK's clients, and prints the outcome of each
// as JSON. Run as `node sdk.mjs URL ENTITY KEY gRPC-web|webrtc`.
import { withPage } from "./browser.mjs";

const [url, entity, key, transport] = process.argv.slice(2);

async function drive({ url, entity, key, transport }) {
  const { sdk } = globalThis.machine;
  const credentials = { type: "api-key", authEntity: entity, payload: key };
  const robot = new sdk.RobotClient();
  const outcomes = {};
  if (transport === "webrtc") {
    const { host } = new URL(url);
    await robot.dial({ host, signalingAddress: url, credentials, noReconnect: true, iceServers: [] });
  } else {
    await robot.dial({ host: url, credentials, noReconnect: true });
  }

  const jpeg = Uint8Array.from(atob(globalThis.picture), (each) => each.charCodeAt(0));
  const pose = { x: 100, y: 0, z: 300, oX: 0, oY: 0, oZ: 1, theta: 0 };
  const nothing = sdk.Struct.fromJson({});
  const pose_in = (frame) => ({ referenceFrame: frame, pose });
  const vector = (y) => ({ x: 0, y, z: 0 });
  const clients = {
    ArmClient: "arm", AudioInClient: "microphone", AudioOutClient: "speaker", BaseClient: "base",
    BoardClient: "board", ButtonClient: "button", CameraClient: "camera", EncoderClient: "encoder",
    GantryClient: "gantry", GenericComponentClient: "thing", GripperClient: "gripper",
    InputControllerClient: "gamepad", MotorClient: "motor", MovementSensorClient: "compass",
    PoseTrackerClient: "tracker", PowerSensorClient: "battery", SensorClient: "sensor",
    ServoClient: "servo", SwitchClient: "switch", DiscoveryClient: "discovery",
    GenericServiceClient: "helper", MotionClient: "motion",
    NavigationClient: "navigation", SlamClient: "slam", VisionClient: "vision",
    WorldStateStoreClient: "world",
  };
  const args = {
    "ArmClient.moveToPosition": [pose], "ArmClient.moveToJointPositions": [[1, 2, 3, 4, 5, 6]],
    "AudioInClient.getAudio": ["pcm16", 0.1, 0n],
    "AudioOutClient.play": [new Uint8Array(3200), { codec: "pcm16", sampleRateHz: 16000, numChannels: 1 }],
    "BaseClient.moveStraight": [10, 100], "BaseClient.spin": [5, 90],
    "BaseClient.setPower": [vector(0.1), vector(0)], "BaseClient.setVelocity": [vector(10), vector(0)],
    "BoardClient.setGPIO": ["1", true], "BoardClient.getGPIO": ["1"], "BoardClient.getPWM": ["1"],
    "BoardClient.setPWM": ["1", 0.5], "BoardClient.getPWMFrequency": ["1"],
    "BoardClient.setPWMFrequency": ["1", 100], "BoardClient.readAnalogReader": ["a"],
    "BoardClient.writeAnalog": ["a", 1], "BoardClient.getDigitalInterruptValue": ["i"],
    "BoardClient.setPowerMode": [1, undefined],
    "EncoderClient.getPosition": [0], "GantryClient.moveToPosition": [[10], [100]],
    "InputControllerClient.triggerEvent": [
      { control: "AbsoluteX", event: "PositionChangeAbs", value: 0.5, time: undefined }],
    "MotorClient.setPower": [0.1], "MotorClient.goFor": [60, 0.01], "MotorClient.goTo": [60, 0],
    "MotorClient.setRPM": [10], "MotorClient.resetZeroPosition": [0],
    "ServoClient.move": [90], "SwitchClient.setPosition": [1],
    "MotionClient.move": [pose_in("world"), "arm"],
    "MotionClient.getPose": ["arm", "world", []],
    "VisionClient.getDetectionsFromCamera": ["camera"],
    "VisionClient.getDetections": [jpeg, 64, 48, "image/jpeg"],
    "VisionClient.getClassificationsFromCamera": ["camera", 1],
    "VisionClient.getClassifications": [jpeg, 64, 48, "image/jpeg", 1],
    "VisionClient.getObjectPointClouds": ["camera"],
    "VisionClient.captureAllFromCamera": ["camera", { returnImage: true, returnDetections: true }],
    "WorldStateStoreClient.getTransform": ["6f2b"],
  };
  const robotCalls = {
    getOperations: [], getSessions: [], getMachineStatus: [], getVersion: [], resourceNames: [],
    frameSystemConfig: [[]], getCloudMetadata: [], getModelsFromModules: [], stopAll: [],
    resourceRPCSubtypes: [],
  };
  const record = async (name, call) => {
    const limit = new Promise((_, reject) => setTimeout(() => reject(new Error("timeout")), 15000));
    try {
      let answer = await Promise.race([call(), limit]);
      if (answer?.[Symbol.asyncIterator]) {
        const first = await Promise.race([answer[Symbol.asyncIterator]().next(), limit]);
        answer = first.value;
      }
      outcomes[name] = "OK";
    } catch (error) {
      outcomes[name] = error.code === undefined ? `${error}` : `code ${error.code}: ${error.rawMessage}`;
    }
  };
  for (const [method, given] of Object.entries(robotCalls))
    if (robot[method]) await record(`RobotClient.${method}`, () => robot[method](...given));
  for (const [kind, name] of Object.entries(clients)) {
    const client = new sdk[kind](robot, name);
    for (const method of Object.getOwnPropertyNames(sdk[kind].prototype)) {
      if (method === "constructor" || method === "streamTicks") continue;
      const given = method === "doCommand" ? [nothing] : (args[`${kind}.${method}`] ?? []);
      await record(`${kind}.${method}`, () => client[method](...given));
    }
  }
  // Not sooner: the data channel opens before the browser calls the connection connected.
  if (transport === "webrtc")
    outcomes.connection = robot.peerConnection?.connectionState ?? "none";
  return outcomes;
}

const PICTURE = process.env.PICTURE;
const outcomes = await withPage(url, async (page) => {
  await page.evaluate((picture) => (globalThis.picture = picture), PICTURE);
  return page.evaluate(drive, { url, entity, key, transport });
});
console.log(JSON.stringify(outcomes));
