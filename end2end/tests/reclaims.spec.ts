import { ADMIN, ENGINEER, expect, LEAD, signIn, test } from "../portal";

test("the inbox opens for everybody, and its count is what the rail says", async ({ page }) => {
  for (const person of [ENGINEER, LEAD, ADMIN]) {
    await signIn(page, person, "/reclaims");
    await expect(page.getByRole("heading", { level: 1, name: "Reclaims" })).toBeVisible();
    await expect(page.getByRole("link", { name: /^Reclaims/ })).toHaveAttribute("aria-current", "page");
    await expect(page.getByRole("heading", { name: "Decided and over" })).toBeVisible();
    await page.getByRole("button", { name: "Sign out" }).click();
  }
});

test("a reclaim that is not there is not found", async ({ page, complaints }) => {
  complaints.expected.push("404");
  await signIn(page, ENGINEER);
  const answer = await page.goto("/reclaims/999999");
  expect(answer?.status()).toBe(404);
});
