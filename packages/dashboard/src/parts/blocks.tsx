/** The blocks of a screen: texts, rows, cards, notes and badges. Each draws one element and takes any `Look`. */

import { createLink } from '@tanstack/react-router';
import type { ComponentProps, ReactNode } from 'react';
import badges from './badge.module.css';
import { type BoxProps, box } from './box.tsx';
import card from './card.module.css';
import codes from './code.module.css';
import facts from './facts.module.css';
import { initials } from './format.ts';
import layout from './layout.module.css';
import looks from './look.module.css';
import { type Look, looked } from './look.ts';
import notes from './note.module.css';

/** A text, with its look as members: `<Text tone="dim" small>`. */
export const Text = box('span');

/** A paragraph. */
export const P = box('p');

/** A small, dim text that explains the thing above it. */
export const Hint = box('span', looks.dim, looks.small);

/** A link to another screen inside a text. */
export const TextLink = createLink((props: Look & Omit<ComponentProps<'a'>, keyof Look>) => (
  <a {...looked({ link: true, ...props })} />
));

/** Children beside each other. */
export const Row = box('div', looks.row);

/** Children below each other. */
export const Stack = box('div', looks.stack);

/** The space around the contents of a screen. */
export const Pad = box('div', looks.pad);

/** Two fields beside each other; below each other on narrow pages. */
export const Two = box('div', layout.two);

/** Three fields beside each other; below each other on narrow pages. */
export const Three = box('div', layout.three);

/** The contents of a screen that is read from top to bottom: sections and cards of at most 1,040 px. */
export const Content = box('div', layout.content);

/** The fields of a form that fills its column. */
export const Fields = box('div', layout.fields);

/** A list of links at the left side. */
export const Nav = box('div', layout.nav);

/** The place of an object: links to the things above it, and its title. */
export const Crumbs = box('div', layout.crumbs);

/** The tabs below the head of a screen. */
export const Tabs = box('nav', layout.tabs);

/** The end of a list: how many entries follow, and a button for them. */
export const More = box('p', layout.more);

/** A text that a person wrote, with a line at its left. */
export const Quote = box('div', layout.quote);

/** Two columns that scroll on their own. `list`: the left one is a list. */
export const Split = ({ list = false, ...props }: ComponentProps<'div'> & { list?: boolean }) => (
  <div {...props} className={list ? `${layout.split} ${layout.listSplit}` : layout.split} />
);

/** A few buttons or links of which one is chosen. */
export const Segments = box('span', layout.segments);

/** A box with a border around things that belong together. */
export const Card = box('div', card.card);

/** The first line of a card, above a line. */
export const CardHead = box('div', card.head);

/** The contents of a card that is not a table. */
export const CardBody = box('div', card.body);

const Frame = box('div', notes.note);

/** A sentence in a frame that a person should not miss: plain, `bad` or `wait`. */
export const Note = <T extends 'div' | 'p' = 'div'>({
  tone,
  ...props
}: Omit<BoxProps<T>, 'tone'> & { tone?: 'bad' | 'wait' | undefined; children: ReactNode }) => (
  <Frame {...(props as BoxProps<'div'>)} className={tone && notes[tone]} />
);

/** A word about a thing, on a coloured ground. */
export const Badge = ({
  tone,
  ...props
}: Omit<Look, 'tone'> & Omit<ComponentProps<'span'>, keyof Look> & { tone?: 'good' | 'bad' | 'wait' | undefined }) => (
  <span {...looked(props, badges.badge, tone && badges[tone])} />
);

/** A dot before the name of a thing that shows its state. Without a tone it moves: something is live. */
export const Dot = ({ tone }: { tone?: 'good' | 'bad' | 'wait' | 'off' | undefined }) => (
  <span className={`${badges.dot} ${tone === undefined ? badges.pulse : badges[tone]}`} aria-hidden="true" />
);

/** The number of things behind a link or a tab. `asks`: they need a person. */
export const Count = ({ asks = false, ...props }: Look & ComponentProps<'span'> & { asks?: boolean | undefined }) => (
  <span {...looked(props, badges.count, asks && badges.waiting)} />
);

/** A value in a frame: a filter, or a file that a message has. */
export const Chip = box('span', badges.chip);

/** The button after the chips that adds one. */
export const AddChip = box('button', badges.chip, badges.addChip);

/** The initials of a person, or with `bot` of an agent. */
export const Avatar = ({ name, bot = false }: { name: string; bot?: boolean }) => (
  <span className={`${badges.avatar} ${bot ? badges.bot : ''}`} aria-hidden="true">
    {initials(name)}
  </span>
);

/** The letter of the team or of Runyard in a square. */
export const Mark = ({ children }: { children: string }) => (
  <span className={badges.mark} aria-hidden="true">
    {children}
  </span>
);

/** A frame around `pre`, with a button that copies it, or with a foot. */
export const CodeBlock = box('div', codes.code);

/** The line below a long text: how much of it is shown, and buttons. */
export const CodeFoot = box('div', codes.foot);

/** A button inside a text that opens or chooses a part of it. */
export const Fold = box('button', codes.fold);

/** Shows one fact, a name with a value, of a list of facts (`dl`). Shows nothing if there is no value. */
export function Fact({ name, children }: { name: string; children: ReactNode }) {
  if (children === undefined || children === null || children === false || children === '') return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

/** A list of facts. `far`: the names are long. */
export const Facts = ({ far = false, ...props }: Look & ComponentProps<'dl'> & { far?: boolean }) => (
  <dl {...looked(props, facts.facts, far && facts.far)} />
);
