import { rmSync } from "node:fs";

// The data folder of the demo that the tests ran on.
export default function teardown() {
  const folder = process.env.MUSTER_E2E_DATA;
  if (folder) rmSync(folder, { recursive: true, force: true });
}
