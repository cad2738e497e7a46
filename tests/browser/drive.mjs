// A browser for tests in Python: reads a line of JSON with a script that uses Playwright's `page`,
// runs it, and prints what it returns, until the input ends.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";
import { FLAGS } from "./browser.mjs";

const options = JSON.parse(process.argv[2] ?? "{}");
const profile = await mkdtemp(path.join(tmpdir(), "chromium-"));
const context = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM,
  headless: true,
  args: FLAGS,
  ignoreHTTPSErrors: true,
  ...options,
});
const page = context.pages()[0] ?? (await context.newPage());
page.setDefaultTimeout(30_000);

// What must not happen: scripts that fail, and requests to anywhere but the machine. A connection may be lost
// on a computer that is busy; the page comes back by itself.
const LOST = /ConnectionClosed|data channel|\[(unavailable|canceled|deadline_exceeded|aborted)\]|net::ERR_(CONN|NETWORK|TIMED)/i;
const problems = [];
const report = (text) => LOST.test(text) || problems.push(text);
page.on("pageerror", (error) => report(`error: ${error.name}: ${error.message}`));
page.on("console", (message) => message.type() === "error" && report(`console: ${message.text()}`));

const AsyncFunction = (async () => {}).constructor;
try {
  for await (const line of createInterface({ input: process.stdin })) {
    const { script, values } = JSON.parse(line);
    const answer = {};
    try {
      const run = new AsyncFunction("page", "context", "problems", "values", script);
      answer.value = (await run(page, context, problems, values)) ?? null;
    } catch (error) {
      answer.error = String(error.stack ?? error);
    }
    console.log(JSON.stringify(answer));
  }
} finally {
  await context.close();
  await rm(profile, { recursive: true, force: true });
}
