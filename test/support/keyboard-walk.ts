/** Test support: walks a page of the dashboard with the keyboard alone, and returns the faults that it finds as sentences. */
import type { Page } from 'playwright-core';

/**
 * Largest number of Tab presses until the focus leaves one element. More than one can be necessary, because each part of a date field
 * gets the focus.
 */
const mostStops = 8;

/** Script for the page. Numbers each control that the keyboard must reach. Returns the names of the controls in the order of the document. */
const markControls = `(root) => {
  const controls = [...root.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')].filter((element) =>
    !element.disabled && element.tabIndex >= 0 && element.checkVisibility({ visibilityProperty: true }) &&
    element.getClientRects().length > 0 && !element.closest('[inert], [aria-hidden="true"]') &&
    // Count one control for a group of radio buttons, because Tab can reach only one button of the group.
    !(element.type === 'radio' && !element.checked && root.querySelector('input[type="radio"][name="' + CSS.escape(element.name) + '"]:checked')));
  for (const element of document.querySelectorAll('[data-walk]')) element.removeAttribute('data-walk');
  return controls.map((element, index) => {
    element.setAttribute('data-walk', String(index));
    const name = element.getAttribute('aria-label') ?? element.labels?.[0]?.textContent ?? element.textContent ?? '';
    return { name: element.tagName.toLowerCase() + ' "' + name.trim().slice(0, 60) + '"', jumps: element.tabIndex > 0 };
  });
}`;

/** Script for the page. Describes the focused element. `isSeen`: an outline or a shadow at the element or around it shows the focus. */
const readFocus = `() => {
  const element = document.activeElement;
  if (!element || element === document.body || element === document.documentElement) return null;
  const shows = (each) => {
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(each);
    return (outlineStyle !== 'none' && parseFloat(outlineWidth) > 0) || boxShadow !== 'none';
  };
  let isSeen = false;
  for (let each = element, up = 0; each && up < 3; each = each.parentElement, up += 1) isSeen ||= shows(each);
  const { top, bottom, left, right } = element.getBoundingClientRect();
  const isInView = bottom > 0 && top < innerHeight && right > 0 && left < innerWidth;
  const dialog = document.querySelector('[role="dialog"], [role="alertdialog"]');
  return {
    index: element.hasAttribute('data-walk') ? Number(element.getAttribute('data-walk')) : -1,
    name: element.tagName.toLowerCase() + ' "' + (element.getAttribute('aria-label') ?? element.textContent ?? '').trim().slice(0, 60) + '"',
    isSeen, isInView, isInDialog: dialog === null || dialog.contains(element),
  };
}`;

interface Focus {
  readonly index: number;
  readonly name: string;
  readonly isSeen: boolean;
  readonly isInView: boolean;
  readonly isInDialog: boolean;
}

const focusOf = (page: Page): Promise<Focus | null> => page.evaluate(`(${readFocus})()`);

/** Presses Tab from the beginning of the page until its end. Each control must be reached once, in order, and with a visible focus. */
export async function walkByTab(page: Page): Promise<string[]> {
  const faults: string[] = [];
  const controls = await page.evaluate<{ name: string; jumps: boolean }[]>(`(${markControls})(document)`);
  for (const { name, jumps } of controls) if (jumps) faults.push(`${name} jumps the order of Tab`);
  const reached = new Set<number>();
  let last = -1;
  let stops = 0;
  let before: Focus | null = null;
  for (let presses = 0; presses < controls.length * mostStops + 20; presses += 1) {
    await page.keyboard.press('Tab');
    const focus = await focusOf(page);
    if (focus === null) break;
    stops = focus.index === before?.index && focus.name === before?.name ? stops + 1 : 0;
    if (stops > mostStops) {
      faults.push(`${focus.name} keeps the focus`);
      break;
    }
    before = focus;
    if (stops > 0) continue;
    if (!focus.isSeen) faults.push(`the focus of ${focus.name} is not visible`);
    if (!focus.isInView) faults.push(`${focus.name} has the focus outside of the view`);
    if (focus.index < 0) continue;
    // In a headless browser, Tab at the end of the page cannot move to controls of the browser, as it does in other browsers.
    if (reached.has(focus.index)) break;
    if (focus.index < last) faults.push(`${focus.name} comes after a control that is below it`);
    last = focus.index;
    reached.add(focus.index);
  }
  for (const [index, { name }] of controls.entries())
    if (!reached.has(index)) faults.push(`Tab does not reach ${name}`);
  return faults;
}

/** Texts of buttons that open a dialog or a menu. The test does not press other buttons, because they act at once. */
const opens =
  /…$|^(Add|New|Create|Invite|Edit|Filter|Save view|Search or jump|Order|Columns|More actions|Rotate|Delete|Remove)\b/;

/** Time limit for a change of the page. The page loads the code of dialogs when the first dialog opens. */
const patienceMs = 60_000;

/**
 * Opens each dialog and menu of the page with Enter. Returns a fault for each of these rules that is broken: Tab stays in an open
 * dialog, an arrow key moves the focus in an open menu, and Escape closes a dialog or menu and returns the focus to its button.
 */
export async function openEach(page: Page): Promise<string[]> {
  const faults: string[] = [];
  const names = await page.evaluate<string[]>(`[...document.querySelectorAll('button:not(:disabled)')]
    .filter((each) => each.checkVisibility({ visibilityProperty: true }))
    .map((each) => (each.getAttribute('aria-label') ?? each.textContent ?? '').trim())`);
  for (const [place, name] of names.entries()) {
    if (!opens.test(name)) continue;
    const button = page.locator('button:not(:disabled):visible').nth(place);
    if (((await button.getAttribute('aria-label')) ?? (await button.textContent()))?.trim() !== name) continue;
    await button.focus();
    await page.keyboard.press('Enter');
    const layer = page.locator('[role="dialog"], [role="alertdialog"], [role="menu"], [role="listbox"]').first();
    const mustOpen = /…$/.test(name);
    const isOpen = await layer.waitFor({ timeout: mustOpen ? patienceMs : 1500 }).then(
      () => true,
      () => false,
    );
    if (!isOpen) {
      if (mustOpen) faults.push(`Enter on "${name}" opens nothing`);
      continue;
    }
    faults.push(
      ...(await walkLayer(page, (await layer.getAttribute('role')) ?? '')).map((fault) => `"${name}": ${fault}`),
    );
    await page.keyboard.press('Escape');
    const isClosed = await layer.waitFor({ state: 'detached', timeout: patienceMs }).then(
      () => true,
      () => false,
    );
    if (!isClosed) {
      faults.push(`Escape does not close what "${name}" opens`);
      break;
    }
    // Compare names, because the place of a button among all buttons changes when a part of the screen loads late.
    const hasReturned = await page
      .waitForFunction(
        "(name) => (document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? '').trim() === name",
        name,
        { timeout: patienceMs },
      )
      .then(
        () => true,
        () => false,
      );
    if (!hasReturned) faults.push(`the focus does not return to "${name}"`);
  }
  return faults;
}

/** Moves the focus inside an open dialog or menu. */
async function walkLayer(page: Page, role: string): Promise<string[]> {
  if (role === 'menu' || role === 'listbox') {
    await page.keyboard.press('ArrowDown');
    const focus = await focusOf(page);
    return focus === null ? ['an arrow moves the focus out of the menu'] : [];
  }
  const faults: string[] = [];
  const dialog = '[role="dialog"], [role="alertdialog"]';
  const controls = await page.evaluate<{ name: string }[]>(`(${markControls})(document.querySelector('${dialog}'))`);
  const reached = new Set<number>();
  const start = await focusOf(page);
  if (start === null || !start.isInDialog) faults.push('the focus is not in the dialog');
  for (let presses = 0; presses <= controls.length * 2 + mostStops; presses += 1) {
    const focus = await focusOf(page);
    if (focus === null || !focus.isInDialog) {
      faults.push('Tab leaves the dialog');
      break;
    }
    if (focus.index >= 0 && !focus.isSeen) faults.push(`the focus of ${focus.name} is not visible`);
    reached.add(focus.index);
    await page.keyboard.press('Tab');
  }
  for (const [index, { name }] of controls.entries())
    if (!reached.has(index)) faults.push(`Tab does not reach ${name}`);
  return [...new Set(faults)];
}
