import { submit } from "../jobs";
import { ENGINEER, expect, signIn, test } from "../portal";

test("eight tabs are open at once, and each one answers and stays live", async ({ context, page }) => {
  test.setTimeout(120_000);
  await signIn(page, ENGINEER);
  const tabs = [page];
  while (tabs.length < 8) tabs.push(await context.newPage());
  for (const tab of tabs) {
    const answer = await tab.goto("/queue", { timeout: 10_000 });
    expect(answer?.status()).toBe(200);
  }
  const asOf = (tab: (typeof tabs)[number]) => tab.locator("time#as-of").getAttribute("datetime");
  for (const tab of tabs) {
    await tab.bringToFront();
    const before = await asOf(tab);
    await expect.poll(() => asOf(tab), { timeout: 15_000, message: "the page renews itself" }).not.toBe(before);
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
