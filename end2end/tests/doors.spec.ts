import { submit } from "../jobs";
import { ADMIN, ENGINEER, expect, LEAD, signIn, test } from "../portal";

test("an admin drains a rack from the map, an engineer reads why, and it is released", async ({ page }) => {
  await signIn(page, ADMIN, "/map?view=table&block=h100-b05");
  await page.getByRole("link", { name: "Hold h100-b05-r2-n0" }).click();
  await expect(page.getByLabel("Name", { exact: true })).toHaveValue("h100-b05-r2-n0");
  await page.getByLabel("Kind", { exact: true }).selectOption("rack");
  await page.getByLabel("Name", { exact: true }).fill("h100-b05-r2");
  await page.getByLabel("How", { exact: true }).selectOption("drain");
  await page.getByLabel("Why", { exact: true }).fill("new power rails");
  await page.getByRole("button", { name: "Set aside" }).click();
  await expect(page.getByRole("row", { name: /rack h100-b05-r2 drained new power rails admin/ })).toBeVisible();
  await page.getByRole("button", { name: "Sign out" }).click();
  await signIn(page, ENGINEER, "/holds");
  await expect(page.getByRole("row", { name: /rack h100-b05-r2/ })).toContainText("new power rails");
  await expect(page.getByRole("button", { name: "Release rack h100-b05-r2" })).toHaveCount(0);
  await page.getByRole("button", { name: "Sign out" }).click();
  await signIn(page, ADMIN, "/holds");
  await page.getByRole("button", { name: "Release rack h100-b05-r2" }).click();
  await expect(page.getByRole("row", { name: /rack h100-b05-r2/ })).toHaveCount(0);
});

test("a lead holds a job and releases it; its owner does not undo that", async ({ page }) => {
  await signIn(page, ENGINEER);
  const job = await submit(page, { name: "held-e2e", pods: 1, gpusPerPod: 1, runTime: "4h" });
  await page.getByRole("button", { name: "Sign out" }).click();
  await signIn(page, LEAD, `/jobs/${job}`);
  await page.getByText("Hold…").click();
  await page.getByLabel(/^Why \(for those who ask why it waits\)/).fill("its data is mended");
  await page.getByRole("button", { name: "Hold this job" }).click();
  await expect(page.getByText("its data is mended").first()).toBeVisible();
  await page.getByRole("button", { name: "Sign out" }).click();
  await signIn(page, ENGINEER, `/jobs/${job}`);
  await expect(page.getByRole("button", { name: "Release" })).toBeDisabled();
  await page.getByRole("button", { name: "Sign out" }).click();
  await signIn(page, LEAD, `/jobs/${job}`);
  await page.getByRole("button", { name: "Release" }).click();
  await expect(page.getByText("Hold…")).toBeVisible();
});

test("a policy is changed with a reason, and who comes after a colleague is told", async ({ page, complaints }) => {
  complaints.expected.push("409");
  await signIn(page, ADMIN, "/admin/policies");
  await page.getByRole("link", { name: "Change claim_again_after" }).click();
  const stale = await page.context().newPage();
  await stale.goto(page.url());
  await page.getByLabel("New value").fill("50m");
  await page.getByLabel("Why", { exact: true }).fill("they ask too often");
  await page.getByRole("button", { name: "Change it" }).click();
  await expect(page.getByRole("row", { name: /claim_again_after/ })).toContainText("50m");
  await stale.getByLabel("New value").fill("2h");
  await stale.getByLabel("Why", { exact: true }).fill("they ask too seldom");
  await stale.getByRole("button", { name: "Change it" }).click();
  await expect(stale.getByRole("alert")).toContainText("to 50m by admin");
  await expect(stale.getByLabel("New value")).toHaveValue("2h");
  await stale.close();
});

test("limits say that there are none, and an admin sets one", async ({ page }) => {
  await signIn(page, ADMIN, "/limits?team=signals");
  await expect(page.getByRole("row", { name: /^signals/ })).toContainText("no limit");
  await page.getByLabel("Running jobs", { exact: true }).fill("400");
  await page.getByLabel("Why", { exact: true }).fill("a review");
  await page.getByRole("button", { name: "Change limits" }).click();
  await expect(page.getByRole("row", { name: /^signals/ })).toContainText("of 400");
});
