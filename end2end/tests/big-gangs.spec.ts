import { show, submit, until } from "../jobs";
import { ADMIN, ENGINEER, expect, signIn, test } from "../portal";

test("1,024 GPUs take four whole blocks, and the map shows them", async ({ page }) => {
  test.setTimeout(150_000);
  await signIn(page, ADMIN, "/jobs/new?template=pretrain");
  const job = await submit(page, {
    name: "pretrain-e2e",
    pods: 128,
    gpusPerPod: 8,
    placement: "block",
    segmentPods: 32,
    timeLimit: "7d",
    runTime: "40h",
  });
  await until(page, job, ["running"], 120_000);
  const { placement } = await show(page, job);
  expect(placement.blocks, "four blocks").toHaveLength(4);
  expect(new Set(placement.nodes).size, "128 nodes, each whole").toBe(128);
  await page.goto("/map");
  for (const block of placement.blocks) {
    await expect(page.getByText(block).first()).toBeVisible();
    await page.goto(`/map?block=${block}&view=table`);
    await expect(page.getByRole("link", { name: String(job) })).toHaveCount(32);
    await page.goto("/map");
  }
});

test("a gang beyond the fleet is told at once that it can never run", async ({ page }) => {
  await signIn(page, ENGINEER);
  const job = await submit(page, { name: "beyond-e2e", pods: 1_025, gpusPerPod: 8 });
  await expect(page.getByText("can never run: asks 8,200 GPUs, the fleet has 4,096").first()).toBeVisible();
  await expect(page.getByText("Can never run", { exact: true }).first()).toBeVisible();
  const seen = await show(page, job);
  expect(seen.state).toBe("queued");
  expect(seen.reason.never).toBe(true);
});
