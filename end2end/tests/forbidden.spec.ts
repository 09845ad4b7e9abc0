import { submit } from "../jobs";
import { ADMIN, ENGINEER, expect, signIn, test } from "../portal";

test("another team's job and bill are not found, and are not said to exist", async ({ page, browser, complaints }) => {
  complaints.expected.push("404");
  await signIn(page, ENGINEER);
  const job = await submit(page, { name: "ours-e2e", pods: 1, gpusPerPod: 1, runTime: "10m" });

  const elsewhere = await browser.newContext();
  const stranger = await elsewhere.newPage();
  await signIn(stranger, "credit-risk engineer");
  for (const path of [`/jobs/${job}`, "/bills/fraud-ml", "/bills/fraud-ml.csv", "/no/such/page"]) {
    const answer = await stranger.request.get(path, { maxRedirects: 0 });
    expect(answer.status(), path).toBe(404);
    expect(await answer.text()).not.toContain("ours-e2e");
  }
  for (const path of [`/api/v1/jobs/${job}`, "/api/v1/bills/fraud-ml"]) {
    const answer = await stranger.request.get(path);
    expect(answer.status(), path).toBe(404);
    expect(answer.headers()["content-type"]).toContain("application/problem+json");
  }
  const refused = await stranger.request.post(`/jobs/${job}/cancel`, { maxRedirects: 0, form: { why: "" }, headers: sameOrigin(stranger.url()) });
  expect(refused.status(), "cancelling it").toBe(404);
  await elsewhere.close();

  await page.reload();
  await expect(page.getByText("Cancelled", { exact: true })).toHaveCount(0);
});

test("a change from another site is refused", async ({ page }) => {
  await signIn(page, ADMIN);
  const answer = await page.request.post("/sign-out", {
    maxRedirects: 0,
    headers: { origin: "https://example.org", "sec-fetch-site": "cross-site" },
  });
  expect(answer.status()).toBe(403);
  await page.goto("/queue");
  await expect(page, "still signed in").toHaveURL(/\/queue/);
});

test("without a session REST asks for one", async ({ request }) => {
  for (const path of ["/api/v1/jobs", "/api/v1/fleet", "/api/v1/bills"]) {
    expect((await request.get(path)).status(), path).toBe(401);
  }
});

function sameOrigin(url: string) {
  return { origin: new URL(url).origin, "sec-fetch-site": "same-origin" };
}
