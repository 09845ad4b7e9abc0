import { fill, submit } from "../jobs";
import { ENGINEER, expect, signIn, test } from "../portal";

test.use({ javaScriptEnabled: false });

test("without JavaScript one submits a job, sees it and cancels it", async ({ page }) => {
  await signIn(page, ENGINEER);
  const job = await submit(page, { name: "no-script-e2e", pods: 1, gpusPerPod: 1, runTime: "100h", timeLimit: "200h" });
  await expect(page.getByRole("heading", { level: 1 })).toContainText("no-script-e2e");
  await page.goto("/queue?search=no-script-e2e");
  await page.getByRole("link", { name: "no-script-e2e" }).click();
  await expect(page).toHaveURL(new RegExp(`/jobs/${job}$`));
  await page.getByText("Cancel…").click();
  await page.getByRole("button", { name: "Cancel this one job" }).click();
  await page.goto(`/jobs/${job}`);
  await expect(page.getByText(/Cancelled|stopping/).first()).toBeVisible();
});

test("without JavaScript a refused form keeps what was typed and marks the field", async ({ page, complaints }) => {
  complaints.expected.push("422");
  await signIn(page, ENGINEER, "/jobs/new");
  await fill(page, { name: "Bad Name", pods: 2, gpusPerPod: 8 });
  await page.getByRole("button", { name: "Submit", exact: true }).click();
  const name = page.getByLabel("Name", { exact: true });
  await expect(name).toHaveValue("Bad Name");
  await expect(name).toHaveAttribute("aria-invalid", "true");
  await expect(page.getByLabel("Pods", { exact: true })).toHaveValue("2");
});
