import type { Page } from "@playwright/test";
import { ADMIN, ENGINEER, expect, LEAD, signIn, test } from "../portal";

/** How many wait for an answer of this person: by the rail, and by the page's own first line. */
function forYou(page: Page) {
  // Both of one moment: the page is looked at again while it is open.
  return page.evaluate(() => {
    const text = (at: string) => document.querySelector(at)?.textContent ?? `no ${at}`;
    const said = text("main p.say");
    const [, total] = /^(\d+) waits? for an answer/.exec(said) ?? [];
    const [, some] = /, (\d+) of them for you to give/.exec(said) ?? [];
    const all = said.includes(", for you to give") ? total : undefined;
    const rail = text('[data-live="reclaims-for-you"]');
    return { rail: rail.replace(" for you to answer", "") || "0", page: some ?? all ?? "0" };
  });
}

test("the inbox opens for everybody, and its count is what the rail says", async ({ page }) => {
  for (const person of [ENGINEER, LEAD, ADMIN]) {
    await signIn(page, person, "/reclaims");
    await expect(page.getByRole("heading", { level: 1, name: "Reclaims" })).toBeVisible();
    await expect(page.getByRole("link", { name: /^Reclaims/ })).toHaveAttribute("aria-current", "page");
    await expect(page.getByRole("heading", { name: "Decided and over" })).toBeVisible();
    // One of the two may have been read just before an answer came in: then the next look has both.
    const agree = async () => {
      const count = await forYou(page);
      return count.rail === count.page ? "agree" : JSON.stringify(count);
    };
    await expect.poll(agree).toBe("agree");
    await page.getByRole("button", { name: "Sign out" }).click();
  }
});

test("a reclaim that is not there is not found", async ({ page, complaints }) => {
  complaints.expected.push("404");
  await signIn(page, ENGINEER);
  const answer = await page.goto("/reclaims/999999");
  expect(answer?.status()).toBe(404);
});
