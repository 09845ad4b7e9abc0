// What every test needs: a page that may not complain, and people to sign in as.
import { expect, test as base, type Page } from "@playwright/test";

export const ENGINEER = "fraud-ml engineer";
export const ANALYST = "fraud-ml analyst";
export const LEAD = "fraud-ml lead";
export const MANAGER = "manager";
export const ADMIN = "admin";

/** What the browser complained about: errors in the console (a blocked style or script among them), thrown errors. */
class Complaints {
  readonly heard: string[] = [];
  /** Parts of complaints that a test brings about itself: the status of a page that must not be there. */
  readonly expected: string[] = [];

  listen(page: Page) {
    page.on("console", (message) => {
      if (message.type() === "error" || message.text().includes("Content Security Policy")) {
        this.note(`${message.text()} (${message.location().url})`);
      }
    });
    page.on("pageerror", (error) => this.note(error.message));
  }

  private note(text: string) {
    if (!this.expected.some((part) => text.includes(part))) this.heard.push(text);
  }
}

export const test = base.extend<{ complaints: Complaints }>({
  complaints: [
    async ({ context }, use) => {
      const complaints = new Complaints();
      context.on("page", (page) => complaints.listen(page));
      await use(complaints);
      expect(complaints.heard, "the browser complains about nothing").toEqual([]);
    },
    { auto: true },
  ],
});

/** Chooses a demo person; ends on the page one wanted, or on the overview. */
export async function signIn(page: Page, person: string, path = "/") {
  await page.goto(`/sign-in?next=${encodeURIComponent(path)}`);
  await page.getByRole("button", { name: person, exact: true }).click();
  await expect(page).not.toHaveURL(/sign-in/);
}

export { expect };
