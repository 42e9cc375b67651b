/**
 * The command palette: finds actions, screens and objects by words. If a person pastes the id of an object or an address of the dashboard,
 * the palette opens the object.
 */

import type { SearchKind } from '@runyard/contract/team/search';
import { isAtLeast, type Role } from '@runyard/contract/wire/access';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { useRouter } from '@tanstack/react-router';
import {
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
  useDeferredValue,
  useEffect,
  useId,
  useMemo,
  useState,
} from 'react';
import { Dialog as AriaDialog, Modal, ModalOverlay } from 'react-aria-components';
import { type Session, teamParameter, useSession } from '../../api/session.ts';
import { inTeam, parseSearch } from '../../frame/search.ts';
import { Hint, Pad, Text } from '../../parts/blocks.tsx';
import { FindInput } from '../../parts/controls.tsx';
import dialog from '../../parts/dialog.module.css';
import { Icon, StateBadge, stateWord } from '../../parts/icon.tsx';
import type { IconName } from '../../parts/icons.ts';
import { type KeyCommand, keyCommands, keyText } from '../../parts/keys.ts';
import { settingsTabs } from '../settings/tabs.ts';
import styles from './palette.module.css';

/** One line of the palette. */
interface Option {
  readonly id: string;
  readonly group: string;
  readonly label: string;
  readonly note: string;
  readonly icon: ReactNode;
  /** Address in the dashboard that the option opens, or the function that it calls. */
  readonly open: string | (() => void);
}

/** Screens and pages, each with the lowest role that may read it. */
const places: readonly { label: string; open: Option['open']; icon: IconName; needs?: Role; ofInstallation?: true }[] =
  [
    { label: 'Runs', open: '/runs', icon: 'runs' },
    { label: 'Inbox', open: '/inbox', icon: 'ask' },
    { label: 'Schedules', open: '/schedules', icon: 'clock' },
    { label: 'Factories', open: '/factories', icon: 'factory' },
    { label: 'Environments', open: '/environments', icon: 'env' },
    { label: 'Agents and skills', open: '/agents', icon: 'agent' },
    { label: 'Workers', open: '/workers', icon: 'worker' },
    { label: 'Usage', open: '/usage', icon: 'usage', needs: 'member' },
    ...settingsTabs.map((tab) => ({ ...tab, open: `/settings/${tab.name}` })),
    // These pages are pages of the service outside of the dashboard, so the router does not know them.
    { label: 'API reference', open: () => location.assign('/docs'), icon: 'book' },
    { label: 'Errors of the API', open: () => location.assign('/errors'), icon: 'warn' },
  ];

/** Matches the ids of objects: UUIDs, and UIDs of 22 letters and digits. */
const looksLikeId = /^([\da-f]{8}-([\da-f]{4}-){3}[\da-f]{12}|[A-Za-z\d]{22})$/i;

/** Maximum number of options that one group lists. */
const mostOfGroup = 6;

/** For each kind of object: the group of the palette in which it is listed, and its icon. */
const kinds = {
  run: ['Runs', 'runs'],
  schedule: ['Schedules', 'clock'],
  automation: ['Automations', 'bolt'],
  webhook: ['Webhooks', 'hook'],
  factory: ['Factories', 'factory'],
  environment: ['Environments', 'env'],
  agent: ['Agents', 'agent'],
  person: ['People', 'people'],
} as const satisfies Record<SearchKind, readonly [string, IconName]>;

/** First characters of the input that limit the options: to actions of the page, to runs, or to people. */
const marks = { '>': [], '#': ['run'], '@': ['person'] } as const satisfies Record<string, readonly SearchKind[]>;
type Mark = keyof typeof marks;

/** Splits the input into its mark and its words. */
function readInput(text: string): { readonly mark: Mark | undefined; readonly words: string } {
  const mark = Object.keys(marks).find((each): each is Mark => text.startsWith(each));
  return { mark, words: text.slice(mark?.length ?? 0).trim() };
}

/** Asks the service for objects that match the words. */
async function findThings({ client }: Session, words: string, kind: readonly SearchKind[] = []): Promise<Option[]> {
  const query = { q: words, limit: mostOfGroup, ...(kind.length === 0 ? {} : { kind: [...kind] }) };
  const { results } = await client.search({ query });
  return results.map(({ kind, uid, name, path, state, enabled }) => {
    const [group, icon] = kinds[kind];
    const found = option(group, uid, name, enabled === false ? 'off' : '', icon, path);
    return state === undefined ? found : { ...found, note: stateWord(state), icon: <StateBadge state={state} /> };
  });
}

const option = (
  group: string,
  id: string,
  label: string,
  note: string,
  icon: IconName,
  open: Option['open'],
): Option => ({ group, id: `${group}/${id}`, label, note, icon: <Icon name={icon} small />, open });

/** Returns the actions of the current page and the screens whose names contain all words. */
function ownOptions({ team, readsInstallation }: Session, words: string, commands: readonly KeyCommand[]): Option[] {
  const has = (label: string): boolean =>
    words
      .toLowerCase()
      .split(/\s+/)
      .every((word) => label.toLowerCase().includes(word));
  return [
    ...commands
      .filter(({ does, key }) => key !== 'mod+k' && has(does))
      .map(({ key, does, run }) =>
        option('Actions', key, does, keyText(key), 'bolt', () => run(new KeyboardEvent('keydown', { key }))),
      ),
    ...places
      .filter(
        ({ label, needs = 'viewer', ofInstallation }) =>
          has(label) && isAtLeast(team.role, needs) && (readsInstallation || !ofInstallation),
      )
      .map(({ label, icon, open }) => option('Go to', label, label, '', icon, open)),
  ];
}

/** `words`: what the person typed before the palette was loaded. */
export function Palette({ close, words: early }: { close: () => void; words: RefObject<string> }) {
  const session = useSession();
  const router = useRouter();
  const [text, setText] = useState(early.current);
  useEffect(() => {
    early.current = '';
  }, [early]);
  const [place, setPlace] = useState(0);
  const [commands] = useState(keyCommands);
  const list = useId();
  const { mark, words } = readInput(text);
  const asked = readInput(useDeferredValue(text));
  const found = useQuery({
    queryKey: ['palette', session.team.uid, asked.mark, asked.words],
    queryFn: async () => await findThings(session, asked.words, asked.mark && marks[asked.mark]),
    enabled: asked.words.length > 1 && asked.mark !== '>',
    refetchInterval: false,
    // Keep the options of the words before, but not those of another mark.
    placeholderData: (before, query) => (query?.queryKey[2] === asked.mark ? before : undefined),
  });
  const options = useMemo(() => {
    const things = words.length > 1 && mark === asked.mark ? (found.data ?? []) : [];
    const own =
      mark === '#' || mark === '@'
        ? []
        : ownOptions(session, words, commands).filter(({ group }) => mark === undefined || group === 'Actions');
    const start =
      words === '' || mark !== undefined
        ? []
        : [
            option(
              'New run',
              'new',
              `New run: ${words}`,
              '',
              'plus',
              `/runs/new?${new URLSearchParams({ prompt: words })}`,
            ),
          ];
    const counts = new Map<string, number>();
    return [...own, ...things, ...start].filter(({ group }) => {
      const count = (counts.get(group) ?? 0) + 1;
      counts.set(group, count);
      return count <= mostOfGroup;
    });
  }, [session, words, found.data, commands, mark, asked.mark]);
  const current = options[Math.min(place, options.length - 1)];

  const choose = (chosen: Option | undefined) => {
    if (chosen === undefined) return;
    close();
    if (typeof chosen.open === 'string') void router.navigate({ href: inTeam(chosen.open) });
    else chosen.open();
  };
  /** Opens what a pasted id or address names. Only the service knows which kind of object an id names. */
  const paste = async (pasted: string, field: Element) => {
    const trimmed = pasted.trim();
    const url = URL.parse(trimmed);
    if (url?.origin === location.origin) {
      close();
      // An address without a team may be of another team. So do not add the team of the current address.
      const search = { [teamParameter]: undefined, ...parseSearch(url.search) };
      await router.navigate({ to: url.pathname, search, hash: url.hash.slice(1) });
    } else if (looksLikeId.test(trimmed)) {
      const { results } = await session.client.search({ query: { q: trimmed, limit: 1 } });
      const named = results.find(({ is_id_match: isNamed }) => isNamed);
      // The person may have closed the palette before the answer came.
      if (named && field.isConnected) choose(option('', 'id', '', '', 'link', named.path));
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const by = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (by !== 0) {
      event.preventDefault();
      setPlace((Math.min(place, options.length - 1) + by + options.length) % Math.max(1, options.length));
    } else if (event.key === 'Enter') choose(current);
  };
  useEffect(() => {
    document.getElementById(`${list}-current`)?.scrollIntoView({ block: 'nearest' });
  });
  return (
    <ModalOverlay className={dialog.overlay ?? ''} isOpen isDismissable onOpenChange={(open) => open || close()}>
      <Modal className={styles.palette ?? ''}>
        <AriaDialog aria-label="Search or jump to">
          <div className={styles.search}>
            <Icon name="search" />
            <FindInput
              autoFocus
              grow
              role="combobox"
              aria-expanded="true"
              aria-controls={list}
              aria-activedescendant={current ? `${list}-current` : undefined}
              aria-label="Words, an id or an address"
              placeholder="Words, an id or an address"
              value={text}
              onChange={({ target }) => {
                setText(target.value);
                setPlace(0);
              }}
              onPaste={({ clipboardData, currentTarget }) =>
                void paste(clipboardData.getData('text'), currentTarget).catch(() => {})
              }
              onKeyDown={onKeyDown}
            />
          </div>
          <div role="listbox" id={list} className={styles.list} aria-label="Found">
            {options.map((each, index) => (
              <div key={each.id}>
                {each.group !== options[index - 1]?.group && (
                  <div className={styles.group} data-part="group">
                    {each.group}
                  </div>
                )}
                {/* biome-ignore lint/a11y/useFocusableInteractive: as above */}
                {/* biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys */}
                <div
                  role="option"
                  id={each === current ? `${list}-current` : undefined}
                  className={styles.option}
                  aria-selected={each === current}
                  onPointerMove={() => setPlace(index)}
                  onClick={() => choose(each)}
                >
                  {each.icon}
                  <Text cut>{visibleText(each.label)}</Text>
                  <Hint>{visibleText(each.note)}</Hint>
                </div>
              </div>
            ))}
            {options.length === 0 && (
              <Pad as="p" tone="muted">
                {found.isFetching ? 'Searching' : 'No result has these words.'}
              </Pad>
            )}
          </div>
          <div className={styles.foot}>
            <span>
              <kbd>↑</kbd> <kbd>↓</kbd> move
            </span>
            <span>
              <kbd>↵</kbd> open
            </span>
            <span>
              <kbd>&gt;</kbd> actions only
            </span>
            <span>
              <kbd>#</kbd> runs only
            </span>
            <span>
              <kbd>@</kbd> people only
            </span>
          </div>
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}
