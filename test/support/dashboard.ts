/** Test support: signs a browser in to the dashboard of a test service, and reports events of runs as their agents do. */

import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Assignment } from '../../packages/service/src/runs/executions/queue/assign.ts';
import type { TestService } from '../../packages/service/test/service.ts';

/** Signs the browser of the page in with an API key, as the sign-in screen does. Default: the key of the owner of the first team. */
export async function signIn(page: Page, service: TestService, key = service.key): Promise<void> {
  const answer = await page.request.post(`${service.baseUrl}/api/v1/browser-sessions`, {
    data: { api_key: key },
    headers: { origin: service.baseUrl },
  });
  expect(answer.status(), await answer.text()).toBe(200);
  const { uid } = (await answer.json()) as { readonly uid: string };
  await page.addInitScript(`localStorage.setItem('runyard.session', ${JSON.stringify(uid)})`);
}

/** Script for the page. Finds texts, labels and tooltips that contain U+202E. The value that a person edits in a field may contain it. */
const findHiddenOrder = `(() => {
  const found = [];
  const note = (place, text) => { if (text?.includes('\\u202e')) found.push(location.pathname + ' ' + place + ': ' + text.replaceAll('\\u202e', '<RLO>').slice(0, 160)); };
  note('tab title', document.title);
  for (const element of document.querySelectorAll('body *')) {
    if (element.matches('script, style, textarea')) continue;
    for (const name of ['aria-label', 'title', 'alt', 'placeholder', 'aria-description']) note(name, element.getAttribute(name));
    for (const node of element.childNodes) if (node.nodeType === Node.TEXT_NODE) note(element.tagName, node.data);
  }
  return found;
})()`;

/**
 * Returns the places where the page contains the character U+202E instead of a visible mark for it. This character reverses the text after
 * it.
 */
export const hiddenOrder = (page: Page): Promise<string[]> => page.evaluate<string[]>(findHiddenOrder);

/** Script for the page. Finds links and buttons of which a part is right of the window or right of the navigation. */
const findTooWide = `(() => {
  const side = document.querySelector('nav[aria-label=Main]')?.getBoundingClientRect().right ?? 0;
  return [...document.querySelectorAll('a, button')].flatMap((element) => {
    const { right, width } = element.getBoundingClientRect();
    const limit = element.closest('nav[aria-label=Main]') ? side : innerWidth;
    return width > 0 && right > limit + 1 ? [location.pathname + ' too wide: ' + element.textContent.slice(0, 80)] : [];
  });
})()`;

/** Returns the links and buttons that a long name has pushed out of the window or out of the navigation. */
export const tooWide = (page: Page): Promise<string[]> => page.evaluate<string[]>(findTooWide);

/** The first events of an agent. */
export const begin = [
  { type: 'agent_started', harness: 'oz', model_id: 'runbook' },
  { type: 'turn_started', step_id: 's', prompt: 'Say hello, then list <b>everything</b>' },
];

/** Returns the event with which an agent asks for permission to run a command. */
export const asksToRun = (command: string, requestId = 'q1', others: Record<string, unknown> = {}) => ({
  type: 'blocked',
  step_id: 's',
  request: {
    request_id: requestId,
    kind: 'permission',
    title: command,
    action: { name: 'shell', category: 'command', input: { command, ...others } },
  },
});

/** Returns a function that reports events as the agent of an execution. */
export function reportsTo(service: TestService) {
  const sent = new Map<string, number>();
  return async ({ runToken }: Assignment, ...events: Record<string, unknown>[]): Promise<void> => {
    const first = (sent.get(runToken) ?? 0) + 1;
    sent.set(runToken, first - 1 + events.length);
    const body = {
      events: events.map((event, index) => ({ seq: first + index, occurred_at: new Date().toISOString(), ...event })),
    };
    await service.ok('POST', '/harness-support/events', { key: runToken, body });
  };
}
