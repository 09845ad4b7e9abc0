import { get, show, submit, until } from "../jobs";
import { ENGINEER, expect, signIn, test } from "../portal";

// The demo's list prices of an H100-hour, in thousandths of a dollar.
const OWN = 2_950;
const BORROWED = 2_360;

test("a 32-GPU fine-tune goes from the form to the bill", async ({ page }) => {
  test.setTimeout(120_000);
  await signIn(page, ENGINEER, "/jobs/new");
  const name = "card-sequence-finetune-e2e";
  const job = await submit(page, {
    name,
    pods: 4,
    gpusPerPod: 8,
    placement: "block",
    timeLimit: "8h",
    checkpointEvery: "35m",
    checkpointSave: "9s",
    // Twelve seconds of the demo's clock at 600 times.
    runTime: "2h",
  });

  // The page itself, without being loaded again, shows it start and end.
  const steps = page.getByRole("list", { name: "The eight steps" });
  await expect(steps.getByRole("listitem")).toHaveCount(8);
  await expect(page.getByText("Running", { exact: true }).first()).toBeVisible({ timeout: 60_000 });
  const running = await show(page, job);
  expect(running.placement.ranks).toHaveLength(4);
  expect(new Set(running.placement.nodes).size, "four nodes").toBe(4);
  expect(running.placement.blocks, "one block").toHaveLength(1);
  await expect(page.getByText(`4 nodes of block ${running.placement.blocks[0]}`).first()).toBeVisible();
  await expect(page.getByText("Succeeded", { exact: true }).first()).toBeVisible({ timeout: 60_000 });

  const ended = await show(page, job);
  expect(ended.checkpoint_count, "two hours hold three saves, 35 minutes apart").toBe(3);
  expect(ended.interruptions).toEqual([]);

  // The bill: GPU-hours by the metered lines, by hand; then the same on page, CSV and API.
  const lines = await get(page, `/api/v1/usage?team=fraud-ml&job=${job}`);
  const held = { own: 0, borrowed: 0 };
  for (const line of lines.lines ?? lines) {
    held[line.entitlement as "own" | "borrowed"] += Number(line.milli_gpu_ms) / 1_000 / 3_600_000;
  }
  const hours = held.own + held.borrowed;
  expect(hours, "32 GPUs for two hours and the time to start and leave").toBeGreaterThan(64);
  expect(hours).toBeLessThan(64 + 32 * 0.5);
  const amount = (held.own * OWN + held.borrowed * BORROWED) / 1_000;

  const bill = await get(page, "/api/v1/bills/fraud-ml");
  const line = bill.lines.find((one: { job: number }) => one.job === job);
  expect(Number(line.gpu_hours)).toBeCloseTo(hours, 3);
  expect(Math.abs(Number(line.amount) - amount), "the amount is hours times rate, to a cent").toBeLessThan(0.011);

  await page.goto("/bills/fraud-ml");
  const row = page.getByRole("row").filter({ has: page.getByRole("link", { name }) });
  await expect(row).toContainText(Number(line.amount).toLocaleString("en", { minimumFractionDigits: 2 }));
  const csv = await page.request.get(await csvLink(page));
  expect(csv.headers()["content-type"]).toContain("text/csv");
  const record = (await csv.text()).split("\n").find((text) => text.includes(name));
  expect(record).toContain(line.amount);
});

async function csvLink(page: import("@playwright/test").Page) {
  const href = await page.getByRole("link", { name: /CSV/ }).first().getAttribute("href");
  return href ?? "no link to the CSV";
}
