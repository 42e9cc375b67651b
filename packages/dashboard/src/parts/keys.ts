/** Keyboard commands. Each screen registers its keys. If two components register the same key, the later registration is used. */

import { useEffect, useRef } from 'react';
import { keep, readKept } from '../api/kept.ts';

/**
 * A key such as `j`, `?` or `Escape`, also with the prefix `shift+` or `mod+` (Ctrl, or Command on a Mac); or two keys one after another,
 * such as `g r`.
 */
export interface KeyCommand {
  readonly key: string;
  /** The description of the command in the list of keys. */
  readonly does: string;
  readonly run: (event: KeyboardEvent) => void;
}

const registered: { current: readonly KeyCommand[] }[] = [];
const storageKey = 'single-keys';
let firstOfTwo: { readonly key: string; readonly at: number } | undefined;

/** Returns true if commands with a single key are turned on in this browser. */
export const areSingleKeysOn = (): boolean => readKept(storageKey) !== 'off';

/** Turns commands with a single key on or off in this browser. */
export const setSingleKeys = (on: boolean): void => keep(storageKey, on ? 'on' : 'off');

/** Returns the commands of the current page, each key once, with the latest registrations first. */
export function keyCommands(): KeyCommand[] {
  const byKey = new Map<string, KeyCommand>();
  for (const { current } of registered.toReversed())
    for (const command of current) if (!byKey.has(command.key)) byKey.set(command.key, command);
  return [...byKey.values()];
}

const isField = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** Returns true for a check box. A check box uses only the space key, so letter keys may run commands while it has the focus. */
const isCheckBox = (target: EventTarget | null): boolean =>
  target instanceof HTMLInputElement && target.type === 'checkbox';

/** Returns true if an element itself uses this key, so that the key must not run a command. */
function usesKey(target: EventTarget | null, name: string): boolean {
  if (!(target instanceof Element)) return false;
  if (name === 'Enter') return target.closest('a[href], button, summary, [role="tab"]') !== null;
  if (name === 'space') return isCheckBox(target) || target.closest('button, summary, [role="tab"]') !== null;
  // In a text field, the browser uses this key to undo the typing of the person.
  return name === 'mod+z' && isField(target);
}

function nameOf(event: KeyboardEvent): string {
  // Caps Lock makes letters upper case. Names of other keys, such as `Enter`, stay as the browser writes them.
  if (event.metaKey || event.ctrlKey) return `mod+${event.key.length === 1 ? event.key.toLowerCase() : event.key}`;
  if (event.shiftKey && /^[a-z]$/i.test(event.key)) return `shift+${event.key.toLowerCase()}`;
  return event.key === ' ' ? 'space' : event.key;
}

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** Returns a key in its usual spelling: `⌘K` or `Ctrl K`, `Ctrl ↵`, `⇧X`, `g r`. */
export function keyText(key: string): string {
  if (key.startsWith('mod+')) return `${isMac ? '⌘' : 'Ctrl '}${keyText(key.slice(4)).toUpperCase()}`;
  if (key.startsWith('shift+')) return `⇧${key.slice(6).toUpperCase()}`;
  return key === 'Enter' ? '↵' : key;
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || event.altKey) return;
  const name = nameOf(event);
  const isSingle = !name.startsWith('mod+');
  if (isSingle && name !== 'Escape' && ((isField(event.target) && !isCheckBox(event.target)) || !areSingleKeysOn()))
    return;
  if (usesKey(event.target, name)) return;
  // Do nothing while a dialog or menu is open, because then only the dialog or menu uses keys.
  if (document.querySelector('[role="dialog"], [role="alertdialog"], [role="menu"], [role="listbox"]')) return;
  const commands = keyCommands();
  const pair = firstOfTwo && Date.now() - firstOfTwo.at < 1500 ? `${firstOfTwo.key} ${name}` : undefined;
  firstOfTwo = undefined;
  const command = commands.find(({ key }) => key === pair) ?? commands.find(({ key }) => key === name);
  if (command) {
    event.preventDefault();
    command.run(event);
  } else if (commands.some(({ key }) => key.startsWith(`${name} `))) firstOfTwo = { key: name, at: Date.now() };
}

/**
 * Registers key commands while the component is mounted. `ofAllScreens`: the commands are those of the frame, and a screen can replace them by
 * its own.
 */
export function useKeys(commands: readonly KeyCommand[], { ofAllScreens = false } = {}): void {
  const holder = useRef(commands);
  useEffect(() => {
    holder.current = commands;
  });
  useEffect(() => {
    if (registered.length === 0) document.addEventListener('keydown', onKey);
    // The frame mounts after the first screen, and its keys must still come before those of the screen.
    if (ofAllScreens) registered.unshift(holder);
    else registered.push(holder);
    return () => {
      registered.splice(registered.indexOf(holder), 1);
      if (registered.length === 0) document.removeEventListener('keydown', onKey);
    };
  }, [ofAllScreens]);
}
