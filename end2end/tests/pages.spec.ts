import AxeBuilder from "@axe-core/playwright";
import { submit } from "../jobs";
import { ADMIN, ENGINEER, expect, MANAGER, signIn, test } from "../portal";

const PAGES = ["/", "/queue", "/queue?state=any", "/jobs/new", "/map", "/map?view=table", "/holds", "/quotas", "/limits", "/reclaims", "/bills", "/bills/fraud-ml", "/tokens"];
const ADMIN_PAGES = ["/holds?on=rack&what=h100-b03-r1", "/map?view=table&block=h100-b03", "/limits?team=fraud-ml", "/admin/policies", "/admin/policies?change=grace"];

for (const colorScheme of ["light", "dark"] as const) {
  test.describe(`in ${colorScheme}`, () => {
    test.use({ colorScheme });

    test("axe finds nothing on the door", async ({ page }) => {
      await page.goto("/sign-in");
      expect(await violations(page)).toEqual([]);
    });

    for (const path of PAGES) {
      test(`axe finds nothing on ${path}`, async ({ page }) => {
        await signIn(page, ENGINEER, path);
        await expect(page.getByRole("heading", { level: 1 })).toHaveCount(1);
        expect(await violations(page)).toEqual([]);
      });
    }

    for (const path of ADMIN_PAGES) {
      test(`axe finds nothing on ${path} for the admin`, async ({ page }) => {
        await signIn(page, ADMIN, path);
        await expect(page.getByRole("heading", { level: 1 })).toHaveCount(1);
        expect(await violations(page)).toEqual([]);
      });
    }

    test("axe finds nothing on a job that waits, one that runs and a refused form", async ({ page, complaints }) => {
      complaints.expected.push("422");
      await signIn(page, ENGINEER);
      await submit(page, { name: "axe-never-e2e", pods: 1_025, gpusPerPod: 8 });
      expect(await violations(page)).toEqual([]);
      await submit(page, { name: "axe-runs-e2e", pods: 1, gpusPerPod: 1, checkpointEvery: "10m", runTime: "4h" });
      await expect(page.getByText("Running", { exact: true }).first()).toBeVisible({ timeout: 30_000 });
      expect(await violations(page)).toEqual([]);
      await page.goto("/jobs/new");
      await page.getByLabel("Pods", { exact: true }).fill("none");
      await page.getByRole("button", { name: "Submit", exact: true }).click();
      await expect(page.getByLabel("Pods", { exact: true })).toHaveAttribute("aria-invalid", "true");
      expect(await violations(page)).toEqual([]);
    });
  });
}

for (const person of [MANAGER, ADMIN]) {
  test(`every page opens for the ${person}`, async ({ page }) => {
    await signIn(page, person);
    for (const path of PAGES) {
      const answer = await page.goto(path);
      expect(answer?.status(), path).toBe(200);
      await expect(page.getByRole("heading", { level: 1 })).toHaveCount(1);
    }
  });
}

test("on a phone no page scrolls sideways", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await signIn(page, ADMIN);
  for (const path of [...PAGES, ...ADMIN_PAGES]) {
    await page.goto(path);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(overflow, path).toBeLessThanOrEqual(0);
  }
});

test("the month is drawn as a chart, and its table stands behind it", async ({ page }) => {
  await signIn(page, ENGINEER, "/bills/fraud-ml");
  await expect(page.locator("canvas")).toBeVisible();
  const painted = () =>
    page.locator("canvas").evaluate((canvas: HTMLCanvasElement) => {
      const pixels = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
      return pixels.some((value) => value !== 0);
    });
  await expect.poll(painted, { message: "something is drawn" }).toBe(true);
  await expect(page.locator("tr[data-day]").first()).toBeAttached();
});

/** What axe finds, in one line each. */
async function violations(page: import("@playwright/test").Page) {
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations.map((found) => `${found.id}: ${found.help} (${found.nodes.map((node) => node.target.join(" ")).join(", ")})`);
}
