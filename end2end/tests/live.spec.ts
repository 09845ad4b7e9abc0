import { submit } from "../jobs";
import type { Page } from "@playwright/test";
import { ENGINEER, expect, signIn, test } from "../portal";

async function look(tab: Page, path: string) {
  const answer = await tab.goto(path, { timeout: 10_000 });
  expect(answer?.status()).toBe(200);
}

test("eight tabs are in view at once, and each one answers and stays live", async ({ context, page }) => {
  test.setTimeout(120_000);
  await signIn(page, ENGINEER);
  // A headless browser calls every tab visible, as eight windows side by side are.
  const tabs = [page];
  while (tabs.length < 8) tabs.push(await context.newPage());
  for (const tab of tabs) await look(tab, "/queue");
  const asOf = (tab: Page) => tab.locator("time#as-of").getAttribute("datetime");
  const stays_live = async (tab: Page) => {
    const before = await asOf(tab);
    await expect.poll(() => asOf(tab), { timeout: 15_000, message: "the page renews itself" }).not.toBe(before);
  };
  for (const tab of tabs) await stays_live(tab);
  // The tab that has the stream for all goes away: another one takes over.
  for (const tab of tabs.splice(0, 3)) await tab.close();
  for (const tab of tabs) await stays_live(tab);
  // One more request of the same browser is still answered.
  await look(tabs[0], "/map");
});

test("a job submitted elsewhere appears in an open queue by itself", async ({ context, page }) => {
  await signIn(page, ENGINEER, "/queue?team=fraud-ml&state=any");
  const other = await context.newPage();
  await submit(other, { name: "appears-e2e", pods: 1, gpusPerPod: 1, runTime: "30m" });
  await page.bringToFront();
  await expect(page.getByRole("link", { name: "appears-e2e" }).first()).toBeVisible();
});
