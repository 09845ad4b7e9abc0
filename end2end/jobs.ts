// Jobs by the form, and the truth about them by REST (the session's cookie opens both).
import { expect, type Page } from "@playwright/test";

/** What is typed; a field that is left out keeps what the form begins with. */
export interface Job {
  name: string;
  pods: number;
  gpusPerPod: number;
  placement?: string;
  segmentPods?: number;
  timeLimit?: string;
  checkpointEvery?: string;
  checkpointSave?: string;
  runTime?: string;
}

/** Fills the submit form and sends it; the job's number, from its page. */
export async function submit(page: Page, job: Job): Promise<number> {
  await page.goto("/jobs/new");
  await fill(page, job);
  await page.getByRole("button", { name: "Submit", exact: true }).click();
  await expect(page).toHaveURL(/\/jobs\/\d+/);
  return Number(/\/jobs\/(\d+)/.exec(page.url())?.[1]);
}

/** Fills the submit form, which the page shows. */
export async function fill(page: Page, job: Job) {
  await page.getByLabel("Name", { exact: true }).fill(job.name);
  await page.getByLabel("Pods", { exact: true }).fill(String(job.pods));
  await page.getByLabel("GPUs per pod").fill(String(job.gpusPerPod));
  if (job.placement) await page.getByLabel("Placement").selectOption(job.placement);
  if (job.segmentPods) await page.getByLabel("Pods of a segment").fill(String(job.segmentPods));
  if (job.timeLimit) await page.getByLabel("Time limit").fill(job.timeLimit);
  if (job.checkpointEvery) await page.getByLabel("Checkpoint every").fill(job.checkpointEvery);
  if (job.checkpointSave) await page.getByLabel("A save stalls it").fill(job.checkpointSave);
  if (job.runTime) await page.getByLabel("Run time").fill(job.runTime);
}

/** What REST says. */
export async function show(page: Page, job: number) {
  return get(page, `/api/v1/jobs/${job}`);
}

/** A GET of REST that must succeed. */
export async function get(page: Page, path: string) {
  const answer = await page.request.get(path);
  expect(answer.status(), path).toBe(200);
  return answer.json();
}

/** Waits, without looking at the page, until REST says so. */
export async function until(page: Page, job: number, states: string[], timeout = 45_000) {
  const state = async () => (await show(page, job)).state;
  await expect.poll(state, { timeout, message: `job ${job} comes to ${states.join(" or ")}` }).toMatch(new RegExp(`^(${states.join("|")})$`));
}
