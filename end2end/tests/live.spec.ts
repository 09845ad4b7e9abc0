import { submit } from "../jobs";
import type { Page } from "@playwright/test";
import { ENGINEER, expect, signIn, test } from "../portal";

/** Tells a tab that it came to the front or went behind: a browser does so by itself, a headless one calls every tab visible. */
async function show(tab: Page, state: "visible" | "hidden") {
  await tab.evaluate((now) => {
    Object.defineProperty(document, "visibilityState", { value: now, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
}

async function look(tab: Page, path: string) {
  const answer = await tab.goto(path, { timeout: 10_000 });
  expect(answer?.status()).toBe(200);
}

test("eight tabs are open at once, and each one answers and stays live", async ({ context, page }) => {
  test.setTimeout(120_000);
  await signIn(page, ENGINEER);
  const tabs = [page];
  for (const tab of tabs) await look(tab, "/queue");
  while (tabs.length < 8) {
    const tab = await context.newPage();
    await show(tabs[tabs.length - 1], "hidden");
    await look(tab, "/queue");
    tabs.push(tab);
  }
  const asOf = (tab: Page) => tab.locator("time#as-of").getAttribute("datetime");
  await show(tabs[7], "hidden");
  for (const tab of tabs) {
    await show(tab, "visible");
    const before = await asOf(tab);
    await expect.poll(() => asOf(tab), { timeout: 15_000, message: "the page renews itself" }).not.toBe(before);
    await show(tab, "hidden");
  }
  // A ninth request of the same browser is still answered.
  expect((await page.request.get("/healthz")).status()).toBe(200);
});

test("a job submitted elsewhere appears in an open queue by itself", async ({ context, page }) => {
  await signIn(page, ENGINEER, "/queue?team=fraud-ml&state=any");
  const other = await context.newPage();
  await submit(other, { name: "appears-e2e", pods: 1, gpusPerPod: 1, runTime: "30m" });
  await page.bringToFront();
  await expect(page.getByRole("link", { name: "appears-e2e" }).first()).toBeVisible();
});
