// A headless Chromium that opens a page and has the SDK in it.
import { build } from "esbuild";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // Otherwise it announces names for its addresses on the network.
  "--disable-features=WebRtcHideLocalIpsWithMdns",
];

export async function bundle() {
  const entry = path.join(import.meta.dirname, "entry.js");
  const result = await build({ entryPoints: [entry], bundle: true, format: "iife", write: false });
  return result.outputFiles[0].text;
}

// Calls `use` with a page that is open at the URL and has `globalThis.machine`.
export async function withPage(url, use) {
  const profile = await mkdtemp(path.join(tmpdir(), "chromium-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM,
    headless: true,
    args: FLAGS,
    // Our own page allows no scripts but its own; the test adds one.
    bypassCSP: true,
    ignoreHTTPSErrors: true,
  });
  try {
    const page = await context.newPage();
    await page.goto(url);
    await page.addScriptTag({ content: await bundle() });
    return await use(page);
  } finally {
    await context.close();
    await rm(profile, { recursive: true, force: true });
  }
}
