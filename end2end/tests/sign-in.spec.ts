import { ENGINEER, expect, signIn, test } from "../portal";

test("somebody who is not signed in is sent to choose a person, and then on to where they were going", async ({ page }) => {
  await page.goto("/queue");
  await expect(page).toHaveURL(/\/sign-in\?next=/);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await page.getByRole("button", { name: ENGINEER, exact: true }).click();
  await expect(page).toHaveURL(/\/queue$/);
});

test("a link that leads elsewhere is not followed after signing in", async ({ page }) => {
  await page.goto(`/sign-in?next=${encodeURIComponent("https://example.org/")}`);
  await page.getByRole("button", { name: ENGINEER, exact: true }).click();
  await expect(page).toHaveURL(/^http:\/\/127\.0\.0\.1:\d+\/$/);
});

test("after signing out the pages are closed again", async ({ page }) => {
  await signIn(page, ENGINEER, "/queue");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.goto("/queue");
  await expect(page).toHaveURL(/\/sign-in/);
});
