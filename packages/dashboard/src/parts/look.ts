import styles from './look.module.css';

/** A colour with a meaning. */
export type Tone = 'muted' | 'dim' | 'good' | 'bad' | 'wait' | 'error' | 'accent';

/** How a text or a box looks. Every component of the kit that draws one element accepts these members. */
export interface Look {
  readonly tone?: Tone | undefined;
  /** Space between the children of a stack, in steps of 4 px. Default: 3. */
  readonly gap?: 1 | 2 | 4 | undefined;
  readonly small?: boolean | undefined;
  readonly big?: boolean | undefined;
  readonly mono?: boolean | undefined;
  readonly medium?: boolean | undefined;
  readonly bold?: boolean | undefined;
  /** Right-aligned digits. */
  readonly number?: boolean | undefined;
  /** An underlined or coloured text that leads somewhere. */
  readonly link?: boolean | undefined;
  /** One line, of which the end is cut off. */
  readonly cut?: boolean | undefined;
  /** Keeps line ends and breaks long words. */
  readonly whole?: boolean | undefined;
  /** Only for screen readers. */
  readonly spoken?: boolean | undefined;
  /** Takes the free space of its row. */
  readonly grow?: boolean | undefined;
  /** At the right end of its row. */
  readonly right?: boolean | undefined;
  /** At the left end of its stack, not stretched. */
  readonly start?: boolean | undefined;
  /** Children are beside each other. */
  readonly row?: boolean | undefined;
  readonly wrap?: boolean | undefined;
  readonly top?: boolean | undefined;
  /** Children are below each other. */
  readonly stack?: boolean | undefined;
  readonly pad?: boolean | undefined;
  /** Pale, because newer contents are being loaded. */
  readonly stale?: boolean | undefined;
  /** Hidden on pages below 860 px. */
  readonly notNarrow?: boolean | undefined;
  /** Hidden on pages below 1180 px. */
  readonly onlyWide?: boolean | undefined;
  readonly className?: string | undefined;
}

/** Returns the attributes of an element: `props` with the members of `Look` as class names. `base`: class names of the component. */
export function looked<P extends Look>(
  { tone, gap, className, ...props }: P,
  ...base: readonly (string | undefined | false)[]
) {
  const classes = [...base, tone && styles[tone], gap && styles[`gap${gap}`]];
  const attributes: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(props)) {
    const look = styles[name];
    if (look === undefined) attributes[name] = value;
    else if (value) classes.push(look);
  }
  classes.push(className);
  return { ...attributes, className: classes.filter(Boolean).join(' ') || undefined };
}

/** Returns the class names of a look, for elements of libraries, such as links of the router. */
export const look = (props: Look): string => looked(props).className ?? '';
