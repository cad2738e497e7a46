// Runs programs, one after the other, and prints what each of them wrote, or how it failed, as JSON.
// Run as `node programs.mjs FILE...`.
import { pathToFileURL } from "node:url";
import { inspect } from "node:util";

const DEADLINE = 20_000;
const exit = process.exit;
const outcomes = {};

function expire() {
  return new Promise((_, reject) => setTimeout(() => reject(new Error("it did not end")), DEADLINE).unref());
}

console.debug = () => {};
// Programs end with it, but others follow.
process.exit = () => {};
for (const file of process.argv.slice(2)) {
  const lines = [];
  console.log = (...values) => lines.push(values.map((each) => (typeof each === "string" ? each : inspect(each))).join(" "));
  try {
    await Promise.race([import(pathToFileURL(file).href), expire()]);
    outcomes[file] = { printed: lines.join("\n"), error: "" };
  } catch (error) {
    outcomes[file] = { printed: lines.join("\n"), error: inspect(error) };
  }
}
process.stdout.write(JSON.stringify(outcomes), () => exit(0));
