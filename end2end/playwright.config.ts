// The portal as people use it: the release server with its demo, in Debian's Chromium. `cargo verify` sets the variables; by
// hand `npx playwright test -c end2end` does too, after `cargo demo` has built the server once.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { defineConfig } from "@playwright/test";

// Workers read this file again: they find what the first reading chose.
process.env.MUSTER_E2E_PORT ??= "3117";
process.env.MUSTER_E2E_DATA ??= mkdtempSync(join(tmpdir(), "muster-e2e-"));
process.env.MUSTER_BIN ??= resolve(import.meta.dirname, "../target/release/muster");

const address = `127.0.0.1:${process.env.MUSTER_E2E_PORT}`;
const demo = ["--addr", address, "--data", process.env.MUSTER_E2E_DATA, "--seed", "7", "--speed", "600", "--fresh"];

export default defineConfig({
  testDir: "tests",
  outputDir: "test-results",
  globalTeardown: "./teardown.ts",
  forbidOnly: true,
  retries: 0,
  // One server and two cores: side by side the tests would only measure each other.
  workers: 1,
  timeout: 180_000,
  // A browser that hangs ends the run, with the tests named that were left.
  globalTimeout: 1_500_000,
  expect: { timeout: 30_000 },
  reporter: "list",
  use: {
    baseURL: `http://${address}`,
    viewport: { width: 1280, height: 860 },
    locale: "en-GB",
    timezoneId: "Europe/Berlin",
    screenshot: "only-on-failure",
    trace: "retain-on-failure",
    launchOptions: {
      executablePath: process.env.CHROMIUM_PATH ?? "/usr/bin/chromium",
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    },
  },
  webServer: {
    command: [process.env.MUSTER_BIN, "demo", ...demo].map((word) => JSON.stringify(word)).join(" "),
    url: `http://${address}/readyz`,
    timeout: 240_000,
    gracefulShutdown: { signal: "SIGTERM", timeout: 10_000 },
    stdout: "ignore",
    stderr: "pipe",
  },
});
